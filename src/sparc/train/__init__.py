"""The loop: what is the same for every method."""

from sparc.train.evaluate import Evaluation, evaluate
from sparc.train.trainer import EpochReport, Observer, StageReport, Trainer, seeded

__all__ = ["EpochReport", "Evaluation", "Observer", "StageReport", "Trainer", "evaluate", "seeded"]
