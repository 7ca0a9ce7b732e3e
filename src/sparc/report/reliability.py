"""How far a model can be relied on, as its card and `sparc inspect` say it."""

from collections.abc import Iterator
from typing import Literal

from sparc.calibration import calibration_error, together
from sparc.model_info import ModelInfo
from sparc.predictor import USUAL_SHARE, why_not

WIDTH = 40
"""Of a diagram, in characters."""


def reliability(info: ModelInfo) -> Iterator[str]:
    """How often it was right when it was how sure, as a diagram that any reader of Markdown shows."""
    bins = together([check.after for check in info.checks]) if info.checks else ()
    if not any(each.pictures for each in bins):
        return
    lines = ["sure of it    right   pictures"]
    for number, each in enumerate(bins):
        if each.pictures:
            right = each.right / each.pictures
            bar = "█" * round(WIDTH * right) + "░" * (WIDTH - round(WIDTH * right))
            mark = min(int(WIDTH * each.sure / each.pictures), WIDTH - 1)
            bar = bar[:mark] + "┃" + bar[mark + 1 :]
            lines.append(f"{10 * number:3d} – {10 * (number + 1):3d} %  {right:6.1%} {each.pictures:8,d}  {bar}")
    before, after = (calibration_error_of(info, when) for when in ("before", "after"))
    yield (
        "## How sure it is\n\nProbabilities of the class that was named, and how often that was right, on the pictures "
        "held out when each task was learned; a bar that ends at ┃ says that they are the same. Scores are divided by "
        f"{info.temperature:.2f}, the temperature, for that. In the mean probabilities are off "
        f"by {after:.1f} % (expected calibration error), and were by {before:.1f} % before; the temperature was chosen "
        "on the same pictures.\n\n"
        "```\n" + "\n".join(lines) + "\n```"
    )


def calibration_error_of(info: ModelInfo, when: Literal["before", "after"]) -> float | None:
    return calibration_error(together([getattr(check, when) for check in info.checks])) if info.checks else None


def none_of_these(info: ModelInfo) -> str:
    limit = info.limit(USUAL_SHARE)
    if limit is None:
        return f"never said: {why_not(info)}"
    stranger = sum(value > limit for value in info.known_strangeness)
    return f"said of pictures stranger than {limit:.3f}, as {stranger} of {len(info.known_strangeness)} held out were"


def unknown_pictures(info: ModelInfo) -> str:
    if info.limit(USUAL_SHARE) is None:
        return "It always names one of the classes above, also for a picture that shows none of them."
    return (
        f"It says “none of these” of pictures that are stranger to it than {USUAL_SHARE:.0%} of those held out were. "
        "Pictures of unknown classes that are like a known one pass all the same, often: `sparc test --unknown` counts "
        "them on yours."
    )


def probabilities(info: ModelInfo) -> str:
    if not info.checks:
        return "Probabilities order the classes; they were not calibrated."
    return "Probabilities were calibrated on the held-out pictures of each task, when it was learned."
