"""The loop: what is the same for every method."""

from sparc.train.evaluate import Evaluation, evaluate, in_chunks, percent_right
from sparc.train.trainer import Observer, StageReport, Trainer, TrainingReport, seeded

__all__ = [
    "Evaluation",
    "Observer",
    "StageReport",
    "Trainer",
    "TrainingReport",
    "evaluate",
    "in_chunks",
    "percent_right",
    "seeded",
]
