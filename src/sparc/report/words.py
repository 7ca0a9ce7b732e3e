"""How things are called, and numbers written, in every table and picture."""

import math

METRIC_TITLES = {
    "accuracy": "Accuracy A_T ↑",
    "average": "Average accuracy Ā ↑",
    "forgetting": "Forgetting ↓",
    "stability": "Stability ↑",
    "plasticity": "Plasticity ↑",
    "trade_off": "Trade-off ↑",
}
SETTING_TITLES = {"class_il": "Class-IL", "task_il": "Task-IL"}


def percent(value: float | None, digits: int = 2) -> str:
    """
    >>> percent(81.234), percent(None)
    ('81.23', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def heading(config: dict[str, object]) -> str:
    return f"{config['method']} on {config['benchmark']}, seed {config['seed']}"
