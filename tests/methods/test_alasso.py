import pytest
import torch
from torch import Tensor, nn

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.regularization.alasso import ALASSO, AlassoSettings
from sparc.train import seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of

CURVATURE = torch.tensor([1.0, 4.0, 0.0])
LR = 0.02
STEPS = [0.99, 0.96, 1.0]
"""1 − LR · CURVATURE / 2: a step of rate r down a parabola is taken for 1 / (1 − rk / 2) times what it takes off."""


class Point(nn.Module):
    """In place of a net: three numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.tensor([2.0, -1.0, 5.0]))

    def add_classes(self, classes: int) -> None:
        """It has none."""


class OnPoint(ALASSO):
    def new_net(self, generator: object) -> Point:  # type: ignore[override]
        return Point()


def learner(**settings: float) -> OnPoint:
    return OnPoint(AlassoSettings(**settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def descend(method: OnPoint, centre: list[float], curvature: Tensor = CURVATURE) -> None:
    """Down to where a bowl and the penalty balance."""
    place, bottom = method.net.place, torch.tensor(centre)
    optimizer = torch.optim.SGD([place], lr=LR)  # type: ignore[list-item]
    for _ in range(600):
        loss = (curvature * (place - bottom).square()).sum() / 2  # type: ignore[operator]
        if method.has_learned:
            loss = loss + method.lam * method.penalty()
        optimizer.zero_grad()
        loss.backward()
        method.before_step()
        optimizer.step()
        method.after_step()


def omega(method: ALASSO) -> list[float]:
    (found,) = method.importance
    return found.tolist()


def learned(stream: Stream, **settings: float) -> OnPoint:
    """Once two of its numbers have come to rest at 0: the first from above, the second from below."""
    method = learner(**settings)
    method.begin_task(stream[0])
    descend(method, [0.0, 0.0, 0.0])
    method.end_task(stream[0])
    return method


def test_on_a_quadratic_importance_is_half_the_curvature_with_the_sign_of_the_move(stream: Stream) -> None:
    assert omega(learned(stream, xi=1e-6)) == pytest.approx([-0.5 / STEPS[0], 2 / STEPS[1], 0], rel=1e-4)
    # Losses of 2 taken off on ways of 2 and 1, squared 4 and 1.
    bounded = [-2 / STEPS[0] / (4 + 0.1), 2 / STEPS[1] / (1 + 0.1), 0]
    assert omega(learned(stream)) == pytest.approx(bounded, rel=1e-4)


def test_springs_are_stiffer_on_the_side_that_nobody_came_from(stream: Stream) -> None:
    method = learned(stream, a=1.8, epsilon=0.25)
    below, above, _ = (abs(value) for value in omega(method))
    method.begin_task(stream[1])
    (anchor,) = method.anchor
    for move, expected in (
        ([0.5, -0.5, 0.0], 0.25 * (below + above)),
        ([-0.5, 0.5, 0.0], 0.25 * (1.8 * (below + above) + 2 * 0.25)),
        ([0.0, 0.0, 2.0], 4 * 0.25),  # what is of no importance has been observed nowhere
    ):
        with torch.no_grad():
            method.net.place.copy_(anchor + torch.tensor(move))  # type: ignore[operator, union-attr]
        assert method.penalty().item() == pytest.approx(expected, rel=1e-4)


def test_where_a_later_task_comes_to_rest_and_what_it_adds(stream: Stream) -> None:
    """A bowl k (x − m)² / 2 and a spring c S x² balance at x = k m / (k + 2 c S)."""
    method = learned(stream, lam=0.5, xi=1e-6, epsilon=0)
    first, second, _ = omega(method)
    method.begin_task(stream[1])
    curvature = torch.tensor([3.0, 1.0, 0.0])
    descend(method, [1.0, 1.0, 0.0], curvature)
    # The first number goes back to where it came from, the second on to where nobody has been.
    x, y = 3 / (3 + 2 * 0.5 * -first), 1 / (1 + 2 * 0.5 * 1.8 * second)
    assert method.net.place.tolist()[:2] == pytest.approx([x, y], rel=1e-3)  # type: ignore[operator]
    (path,) = method.path
    gained = [3 * (1 - (1 - x) ** 2) / 2, (1 - (1 - y) ** 2) / 2]
    assert path.tolist()[:2] == pytest.approx(gained, rel=5e-2), "what the bowl alone has lost"
    method.end_task(stream[1])
    # Less what the springs have gained, alike on both sides, over the way squared; and never less than before.
    expected = [max(gained[0] / x**2 + first, -first), max(gained[1] / y**2 - second, second)]
    assert omega(method)[:2] == pytest.approx(expected, rel=5e-2)


def test_importance_never_shrinks_and_takes_the_sign_of_the_last_move(stream: Stream) -> None:
    method = learner(xi=1.0)
    for task, move, path, expected in (
        (stream[0], [1.0, -1.0, 0.0], [4.0, 4.0, -3.0], [2.0, -2.0, 0.0]),
        (stream[1], [-1.0, -1.0, 1.0], [2.0, 12.0, 1.0], [-2.0, -5.0, 0.5]),
    ):
        method.begin_task(task)
        with torch.no_grad():
            method.net.place += torch.tensor(move)  # type: ignore[operator]
        method.path.set([torch.tensor(path)])
        method.end_task(task)
        assert omega(method) == expected
    assert [len(tensor) for tensor in (*method.path, *method.last)] == [0, 0], "nothing more is kept than is needed"


def test_new_rows_of_the_head_have_no_spring_and_the_penalty_pulls(stream: Stream) -> None:
    method = ALASSO(AlassoSettings(width=1 / 8, lam=3, a=2, epsilon=0), 1, (8, 8), AUGMENT, seeded(0, "method"))
    method.begin_task(stream[0])
    method.importance.set([torch.full_like(parameter, -1.0) for parameter in method.net.parameters()])
    method.begin_task(stream[1])
    assert method.penalty() == 0
    with torch.no_grad():
        method.net.head.bias += torch.tensor([0.5, -0.5, 7.0, 7.0, 7.0])
    assert method.penalty().item() == pytest.approx(0.25 + 2 * 0.25)
    method.eval()
    batch = batch_of(stream[1], torch.arange(6))
    plain = batch.cross_entropy(method.net(batch.images))
    torch.testing.assert_close(method.loss(batch), plain + 3 * 0.75)
    (3 * method.penalty()).backward()
    method.before_step()
    assert method.net.head.bias.grad is not None
    assert method.net.head.bias.grad.tolist() == pytest.approx([3.0, -6.0, 0.0, 0.0, 0.0])
    gradient = method.gradients[-1]
    assert gradient is not None
    assert gradient.tolist() == pytest.approx([0.0] * 5, abs=1e-5), "the path integral is of the task's own loss"


@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"lam": -1}, "--lam -1"), ({"xi": 0}, "--xi 0"), ({"a": 0.5}, "--a 0.5"), ({"epsilon": -1}, "--epsilon -1")],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        AlassoSettings(**settings)  # type: ignore[arg-type]
