"""The loop: what is the same for every method."""

from sparc.train.evaluate import Evaluation, evaluate
from sparc.train.trainer import Observer, StageReport, Trainer, TrainingReport, seeded

__all__ = ["Evaluation", "Observer", "StageReport", "Trainer", "TrainingReport", "evaluate", "seeded"]
