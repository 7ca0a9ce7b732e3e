"""PAE: each task trains what is free, uses all weights of the tasks before it, and gives up what it can do without.

Hung, Lee, Wan, Chen, Chan and Chen, "Increasingly Packing Multiple Facial-Informatics Modules in A Unified
Deep-Learning Model via Lifelong Learning", ICMR 2019. It is CPG without picking, and its net may grow to twice its
width.
"""

from sparc.methods.masks.cpg import CPG


class PAE(CPG):
    name = "pae"
    title = "PAE"
    paper = "Hung et al., ICMR 2019"
    picks = False
    growths = 2
