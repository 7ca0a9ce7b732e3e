"""How things are called, and numbers written, in every table and picture."""

from sparc.experiment.result import Setting

METRIC_TITLES = {
    "accuracy": "Accuracy A_T ↑",
    "average": "Average accuracy Ā ↑",
    "forgetting": "Forgetting ↓",
    "stability": "Stability ↑",
    "plasticity": "Plasticity ↑",
    "trade_off": "Trade-off ↑",
}
METRIC_SYMBOLS = {
    "accuracy": "A_T",
    "average": "Ā",
    "forgetting": "forgetting",
    "stability": "stability",
    "plasticity": "plasticity",
    "trade_off": "trade-off",
}
"""Short titles of metrics, where there is little room."""
METRIC_MEANINGS = {
    "accuracy": "mean accuracy over all tasks after the last one",
    "average": "mean of the stages' accuracies, each over the tasks learned by then",
    "forgetting": "mean drop of a task's accuracy from when it was learned to the end",
    "stability": "mean accuracy at the end on all tasks but the last",
    "plasticity": "mean accuracy on each task when it was learned",
    "trade_off": "harmonic mean of stability and plasticity",
}
SETTING_TITLES: dict[Setting, str] = {"class_il": "Class-IL", "task_il": "Task-IL"}
