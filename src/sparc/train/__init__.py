"""The loop: what is the same for every method."""

from sparc.train.checkpoint import Checkpoints, Snapshot, newest_content
from sparc.train.costs import Costs, measure_costs
from sparc.train.evaluate import Evaluation, accuracy, evaluate
from sparc.train.randomness import seeded
from sparc.train.state import Checkpointer, Observer, StageReport, TrainingReport, TrainState
from sparc.train.trainer import Trainer

__all__ = [
    "Checkpointer",
    "Checkpoints",
    "Costs",
    "Evaluation",
    "Observer",
    "Snapshot",
    "StageReport",
    "TrainState",
    "Trainer",
    "TrainingReport",
    "accuracy",
    "evaluate",
    "measure_costs",
    "newest_content",
    "seeded",
]
