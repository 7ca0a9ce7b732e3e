import pytest
import torch
from torch import Tensor, nn

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.regularization.si import SI, SISettings
from sparc.train import seeded
from tests.examples import AUGMENT

CURVATURE = torch.tensor([1.0, 4.0, 0.0])
LR = 0.02
STEPS = [0.99, 0.96, 1.0]
"""1 − LR · CURVATURE / 2."""


class Point(nn.Module):
    """In place of a net: three numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.tensor([2.0, -1.0, 5.0]))

    def add_classes(self, classes: int) -> None:
        """It has none."""


class OnPoint(SI):
    def new_net(self, generator: object) -> Point:  # type: ignore[override]
        return Point()


def bowl(place: Tensor, centre: Tensor) -> Tensor:
    return (CURVATURE * (place - centre).square()).sum() / 2


def descend(method: OnPoint, centre: Tensor) -> list[float]:
    """Down to the bottom of a bowl and the penalty; what each parameter has taken off the bowl's part of the loss."""
    place = method.net.place
    start = place.detach().clone()
    optimizer = torch.optim.SGD([place], lr=LR)  # type: ignore[list-item]
    for _ in range(600):
        loss = bowl(place, centre)  # type: ignore[arg-type]
        if method.has_learned:
            loss = loss + method.lam * method.penalty()
        optimizer.zero_grad()
        loss.backward()
        method.before_step()
        optimizer.step()
        method.after_step()
    gained = CURVATURE * ((start - centre).square() - (place - centre).square()) / 2  # type: ignore[operator]
    return gained.tolist()


def test_the_path_integral_on_a_quadratic_is_the_loss_taken_off(stream: Stream) -> None:
    method = OnPoint(SISettings(xi=1e-6), 1, (8, 8), AUGMENT, seeded(0, "method"))
    method.begin_task(stream[0])
    gained = descend(method, torch.zeros(3))
    assert gained == pytest.approx([2.0, 2.0, 0.0], abs=1e-4)
    (path,) = method.path
    # A step of rate r down a parabola of curvature k is taken for 1 / (1 − rk / 2) times as much as it takes off.
    assert path.tolist() == pytest.approx([2 / STEPS[0], 2 / STEPS[1], 0.0], rel=1e-4)
    # ω / Δ² is then half the curvature: the parabola that the loss is.
    method.end_task(stream[0])
    (importance,) = method.importance
    assert importance.tolist() == pytest.approx([0.5 / STEPS[0], 2 / STEPS[1], 0.0], rel=1e-4)


def test_xi_bounds_what_hardly_moved(stream: Stream) -> None:
    method = OnPoint(SISettings(xi=1.0), 1, (8, 8), AUGMENT, seeded(0, "method"))
    method.begin_task(stream[0])
    descend(method, torch.zeros(3))
    method.end_task(stream[0])
    (importance,) = method.importance
    # Losses of 2 taken off on ways of 2 and 1.
    assert importance.tolist() == pytest.approx([2 / STEPS[0] / (4 + 1), 2 / STEPS[1] / (1 + 1), 0.0], rel=1e-4)


def test_in_a_later_task_only_its_own_loss_counts_and_springs_pull_back(stream: Stream) -> None:
    lam = 0.5
    method = OnPoint(SISettings(lam=lam, xi=1e-6), 1, (8, 8), AUGMENT, seeded(0, "method"))
    method.begin_task(stream[0])
    descend(method, torch.zeros(3))
    method.end_task(stream[0])
    method.begin_task(stream[1])
    gained = descend(method, torch.full((3,), 3.0))
    # Where bowl and spring balance: k (x − 3) + 2 · ½ · (k / 2) x = 0, so x = 2 whatever k, but for the steps' length.
    assert method.net.place.tolist()[:2] == pytest.approx([2.0, 2.0], rel=2e-2)  # type: ignore[operator]
    (path,) = method.path
    assert path.tolist() == pytest.approx(gained, rel=8e-2), "not what the spring has taken off or put on"


def test_moves_that_raised_the_loss_take_importance_away_but_never_below_nothing(stream: Stream) -> None:
    method = OnPoint(SISettings(), 1, (8, 8), AUGMENT, seeded(0, "method"))
    for task, path, expected in (
        (stream[0], [-1.0, 1.0, 2.0], [0.0, 1.0, 2.0]),
        (stream[1], [1.0, -3.0, -0.5], [1.0, 0.0, 1.5]),
    ):
        method.begin_task(task)
        method.path.set([torch.tensor(path)])
        method.end_task(task)
        (importance,) = method.importance
        assert importance.tolist() == expected
    assert [len(tensor) for tensor in (*method.path, *method.last)] == [0, 0], "nothing more is kept than is needed"


@pytest.mark.parametrize(("settings", "flag"), [({"lam": -1}, "--lam -1"), ({"xi": 0}, "--xi 0")])
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        SISettings(**settings)  # type: ignore[arg-type]
