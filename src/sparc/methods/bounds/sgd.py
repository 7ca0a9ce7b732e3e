"""Plain fine-tuning: one net learns task after task with nothing done against forgetting. The lower bound."""

from sparc.methods.parts.single import SingleNet


class SGD(SingleNet):
    name = "sgd"
    title = "SGD"
    paper = "lower bound"
