"""The loop: what is the same for every method."""

from sparc.train.checkpoint import Checkpoints, Snapshot, newest_content
from sparc.train.costs import Work, count_kept, measure_work
from sparc.train.evaluate import Evaluation, accuracy, evaluate
from sparc.train.randomness import seeded
from sparc.train.state import Checkpointer, Observer, StageReport, TrainingReport, TrainState
from sparc.train.trainer import Trainer

__all__ = [
    "Checkpointer",
    "Checkpoints",
    "Evaluation",
    "Observer",
    "Snapshot",
    "StageReport",
    "TrainState",
    "Trainer",
    "TrainingReport",
    "Work",
    "accuracy",
    "count_kept",
    "evaluate",
    "measure_work",
    "newest_content",
    "seeded",
]
