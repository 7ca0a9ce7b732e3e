"""Weight alignment: SPARC whose heads are brought to one size of weights instead of one size of answers.

Zhao, Xiao, Gan, Zhang and Xia, "Maintaining Discrimination and Fairness in Class Incremental Learning", CVPR 2020: when
a task is over, its head's weights are scaled so that a class's weight vector is as long, in the mean, as those of the
older heads; biases stay. SPARC's paper compares its re-normalization with this.
"""

from dataclasses import asdict
from typing import Any

import torch

from sparc.methods.sparc.settings import SemanticSettings, SparcSettings
from sparc.methods.sparc.sparc import SPARC
from sparc.nn.head import Head


class WeightAlignment(SPARC):
    name = "weight-alignment"
    title = "SPARC, weight alignment"
    paper = "Zhao et al., CVPR 2020"
    Settings = SemanticSettings

    def __init__(self, settings: SemanticSettings, *rest: Any) -> None:
        super().__init__(SparcSettings(**asdict(settings), kappa=0), *rest)

    @torch.no_grad()
    def balance(self, head: Head) -> None:
        older = [memory.head.weight for memory in self.net.memories()[:-1]]
        if older:
            head.weight.mul_(torch.cat(older).norm(dim=1).mean() / head.weight.norm(dim=1).mean())
