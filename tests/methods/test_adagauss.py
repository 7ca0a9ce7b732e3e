import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Batch, Recipe
from sparc.methods.prototypes.adagauss import AdaGauss, AdaGaussSettings, anti_collapse
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT, blobs
from tests.methods.contract import batch_of, batches, begin, take_steps

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.05, momentum=0.9)


def learner(**settings: float) -> AdaGauss:
    small = {"width": 1 / 8, "features": 4, "samples": 100, **settings}
    return AdaGauss(AdaGaussSettings(**small), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def learned(stream: Stream, tasks: int, **settings: float) -> tuple[AdaGauss, Trainer]:
    method = learner(**settings)
    trainer = Trainer(method, RECIPE, 0)
    for task in stream[:tasks]:
        trainer.learn(task)
    return method, trainer


def spread(covariance: list[list[float]]) -> Tensor:
    """Four points in two dimensions that have it."""
    square = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * 0.75**0.5
    return square @ torch.linalg.cholesky(torch.tensor(covariance)).T


def test_anti_collapse_by_hand() -> None:
    # The factor of [[1, 0.6], [0.6, 1]] has 1 and √(1 − 0.6²) on its diagonal.
    assert anti_collapse(spread([[1.0, 0.6], [0.6, 1.0]])).item() == pytest.approx(-0.9, abs=1e-5)
    # More than 1 is no better than 1.
    assert anti_collapse(spread([[4.0, 0.0], [0.0, 0.25]]) + 7).item() == pytest.approx(-0.75, abs=1e-5)


def test_anti_collapse_spreads_what_is_narrow_and_leaves_what_is_wide() -> None:
    points = spread([[4.0, 0.0], [0.0, 0.25]]).requires_grad_()
    anti_collapse(points).backward()
    assert points.grad is not None
    torch.testing.assert_close(points.grad[:, 0], torch.zeros(4))
    assert torch.equal(points.grad[:, 1].sign(), -points.detach()[:, 1].sign()), "a step goes outwards"


@pytest.mark.parametrize("count", [2, 4])
def test_too_few_pictures_for_a_covariance_push_nothing(count: int) -> None:
    assert anti_collapse(torch.randn(count, 4, generator=seeded(0, "few"))) == 0


def test_features_that_are_all_alike_do_no_harm() -> None:
    points = torch.ones(9, 4, requires_grad=True)
    loss = anti_collapse(points)
    loss.backward()
    assert loss.isfinite()
    assert points.grad is not None
    assert points.grad.isfinite().all()


def test_a_linear_adapter_moves_a_gaussian_to_the_known_mean_and_covariance() -> None:
    method = learner(features=2, samples=40_000)
    points = torch.randn(50, 2, generator=seeded(0, "points")) @ torch.tensor([[2.0, 0.5], [0.0, 0.3]])
    method.gaussians.add(points, torch.zeros(50, dtype=torch.int64))
    method.gaussians.add(points + 5, torch.ones(50, dtype=torch.int64))
    weight, bias = torch.tensor([[0.0, -1.0], [3.0, 1.0]]), torch.tensor([1.0, -2.0])
    linear = nn.Linear(2, 2)
    with torch.no_grad():
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
        method.adapter = nn.Sequential(linear)
        method.move_gaussians()
    for label, shift in enumerate((0, 5)):
        mean = weight @ (points.mean(0) + shift) + bias
        covariance = weight @ points.T.cov() @ weight.T
        error = (method.gaussians.means[label] - mean).abs() / covariance.diagonal().sqrt()
        assert error.max() < 0.03, "five deviations of a mean of so many"
        found = method.gaussians.covariances()[label]
        torch.testing.assert_close(found, covariance.double(), rtol=0.05, atol=0.05)


def test_old_statistics_move_through_the_adapter_alone(
    stream: Stream, augment: Augment, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, trainer = learned(stream, 1)
    old = {name: value.clone() for name, value in method.gaussians.state_dict().items()}
    monkeypatch.setattr(method, "move_gaussians", lambda: None)
    trainer.learn(stream[1])
    for name, value in old.items():
        assert torch.equal(method.gaussians.state_dict()[name][:2], value), name

    method, trainer = learned(stream, 1)
    move = method.move_gaussians

    def through_nothing() -> None:
        method.adapter = nn.Sequential()
        with torch.no_grad():
            for layer in (method.net.head, method.distiller[0]):
                layer.weight.mul_(2)
        move()

    monkeypatch.setattr(method, "move_gaussians", through_nothing)
    trainer.learn(stream[1])
    deviations = method.gaussians.covariances().diagonal(dim1=1, dim2=2).sqrt()[:2]
    assert ((method.gaussians.means[:2] - old["means"]).abs() < 0.5 * deviations).all(), "but for being sampled"
    features = method.predict_batched(method.net, stream[1].train.images).double()
    for label in range(2, 5):
        torch.testing.assert_close(method.gaussians.means[label], features[stream[1].train.labels == label].mean(0))


def test_answers_are_mahalanobis_distances_a_second_way(stream: Stream, augment: Augment) -> None:
    method, _ = learned(stream, 2, shrink=3)
    method.eval()
    images = augment.normalize(stream.test(0).images)
    with torch.no_grad():
        features = method.net(images).double()
    for label, covariance in enumerate(method.gaussians.covariances()):
        shrunk = covariance + 3 * covariance.diagonal().mean() * torch.eye(4)
        scale = torch.diag(shrunk.diagonal() ** -0.5)
        root = torch.linalg.cholesky(scale @ shrunk @ scale)
        mean = method.gaussians.means[label]
        off = features / features.norm(dim=1, keepdim=True) - mean / mean.norm()
        distances = torch.linalg.solve_triangular(root, off.T, upper=False).square().sum(0)
        torch.testing.assert_close(method.logits(images)[:, label], -distances.float(), rtol=1e-4, atol=1e-5)


def test_the_first_task_learns_turned_pictures_as_classes(stream: Stream) -> None:
    method = learner(anti_collapse=0)
    begin(method, stream[0])
    method.eval()
    assert method.head.out_features == 8
    batch = batch_of(stream[0], torch.tensor([0, 30]))
    turned = torch.cat([batch.images.rot90(turn, (2, 3)) for turn in range(4)])
    labels = torch.cat([4 * batch.labels + turn for turn in range(4)])
    torch.testing.assert_close(method.loss(batch), cross_entropy(method.head(method.net(turned)), labels))
    (phase,) = method.phases(stream[0], AdaGauss.recipe)
    assert (phase.recipe.batch_size, phase.recipe.lr) == (64, 0.1)


def test_the_loss_of_a_later_task_by_hand(stream: Stream) -> None:
    method, _ = learned(stream, 1, lam=10, anti_collapse=0.5)
    begin(method, stream[1])
    method.eval()
    batch = batch_of(stream[1], torch.arange(0, 72, 4))
    with torch.no_grad():
        method.net.head.weight.mul_(1.5)
    features, before = method.net(batch.images), method.teacher(batch.images)
    assert not torch.allclose(features, before)
    learning = cross_entropy(method.head(features), batch.labels - 2)
    first, _, second = method.distiller
    said = second(nn.functional.gelu(first(features)))
    expected = learning + 10 * (said - before).square().mean() + 0.5 * anti_collapse(features)
    torch.testing.assert_close(method.loss(batch), expected)
    assert (first.out_features, second.out_features) == (128, 4)


def test_the_adapter_learns_new_features_from_old_ones_and_nothing_else_does(stream: Stream) -> None:
    method, _ = learned(stream, 1)
    begin(method, stream[1])
    train, adapt = method.phases(stream[1], AdaGauss.recipe)
    assert (train.recipe.epochs, train.recipe.lr) == (200, pytest.approx(0.01))
    assert (adapt.name, adapt.recipe.epochs, adapt.recipe.lr) == ("adapt", 100, pytest.approx(0.01))
    take_steps(method, train, batches(stream[1], AUGMENT, 3))
    before = {name: value.clone() for name, value in method.state_dict().items()}
    take_steps(method, adapt, batches(stream[1], AUGMENT, 3))
    changed = {name for name, value in method.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert all(name.startswith("adapter.") for name in changed)
    batch = batch_of(stream[1], torch.arange(20))
    method.eval()
    adapted = method.adapter(method.teacher(batch.images))
    expected = mse_loss(adapted, method.net(batch.images)) + anti_collapse(adapted)
    torch.testing.assert_close(method.adapter_loss(batch), expected)


def test_training_leaves_the_adapter_alone(stream: Stream) -> None:
    method, _ = learned(stream, 1)
    begin(method, stream[1])
    before = [value.clone() for value in method.adapter.parameters()]
    take_steps(method, method.phases(stream[1], RECIPE)[0], batches(stream[1], AUGMENT, 3))
    assert all(torch.equal(old, new) for old, new in zip(before, method.adapter.parameters(), strict=True))


def test_helpers_are_new_for_each_task_and_are_not_kept(stream: Stream) -> None:
    method, _ = learned(stream, 1)
    seen: list[Tensor] = []
    for task in stream[1:]:
        helpers = (method.head, method.distiller, method.adapter)
        assert sum(value.numel() for helper in helpers for value in helper.parameters()) == 0
        assert not {"head", "distiller", "adapter"} & set(method.parameters_by_owner())
        begin(method, task)
        assert method.head.out_features == len(task.classes)
        seen += [method.distiller[0].weight.detach().clone(), method.adapter[0].weight.detach().clone()]
        method.end_task(task)
    assert len({weight.numpy().tobytes() for weight in seen}) == 4


def test_there_are_no_more_features_than_the_net_has_filters() -> None:
    assert learner(features=64).net.classes == 16
    assert AdaGauss(AdaGaussSettings(), 1, (32, 32), AUGMENT, seeded(0, "method")).gaussians.means.shape == (0, 64)


@pytest.mark.parametrize(("epoch", "reached"), [(1, False), (2, True)])
def test_no_gradient_reaches_the_net_in_the_first_hundredth_of_the_epochs(
    stream: Stream, epoch: int, reached: bool
) -> None:
    method = learner()
    begin(method, stream[0])
    shown = batch_of(stream[0], torch.arange(9))
    recipe = Recipe(epochs=200)
    batch = Batch(shown.images, shown.labels, shown.raw_images, shown.indices, shown.task, recipe, epoch, 200)
    method.loss(batch).backward()
    assert method.head.weight.grad is not None
    assert any(parameter.grad is not None for parameter in method.net.parameters()) == reached


def test_one_picture_a_class_is_enough(augment: Augment) -> None:
    few = Splits(blobs(1, 6, seed=1), blobs(5, 6, seed=2))
    stream = Stream(few, [2, 2, 2])
    method, _ = learned(stream, 3)
    logits = method.eval().logits(augment.normalize(stream.test(2).images))
    assert logits.shape == (10, 6)
    assert logits.isfinite().all()


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"features": 0}, "--features 0"),
        ({"hidden": 0}, "--hidden 0"),
        ({"lam": -1}, "--lam -1"),
        ({"anti_collapse": -1}, "--anti-collapse -1"),
        ({"samples": 1}, "--samples 1"),
        ({"shrink": 0}, "--shrink 0"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        AdaGaussSettings(**settings)  # type: ignore[arg-type]
