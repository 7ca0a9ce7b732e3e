"""The loop: what is the same for every method."""

from sparc.train.checkpoint import Checkpoints, Snapshot, newest_content
from sparc.train.evaluate import Evaluation, evaluate, in_chunks, percent_right
from sparc.train.randomness import seeded
from sparc.train.trainer import Keeper, Observer, Position, StageReport, Trainer, TrainingReport

__all__ = [
    "Checkpoints",
    "Evaluation",
    "Keeper",
    "Observer",
    "Position",
    "Snapshot",
    "StageReport",
    "Trainer",
    "TrainingReport",
    "evaluate",
    "in_chunks",
    "newest_content",
    "percent_right",
    "seeded",
]
