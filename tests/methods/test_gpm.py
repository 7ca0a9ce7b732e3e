import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.parts.bases import Bases, patches, projected
from sparc.methods.projection.gpm import GPM, GpmSettings
from sparc.nn.resnet import Conv
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import batch_of, begin

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.05)


def learner(**settings: float) -> GPM:
    return GPM(GpmSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def cloud(count: int, size: int, seed: int) -> Tensor:
    """Vectors that vary in each direction by less than in the one before it."""
    generator = torch.Generator().manual_seed(seed)
    turned = torch.linalg.qr(torch.randn(size, size, generator=generator))[0]
    return torch.randn(count, size, generator=generator) * 0.7 ** torch.arange(size) @ turned


@pytest.mark.parametrize("count", [8, 40])
@pytest.mark.parametrize("energy", [0.5, 0.97])
def test_a_basis_has_as_many_singular_vectors_as_reach_the_energy(count: int, energy: float) -> None:
    vectors = cloud(count, 12, seed=count)
    bases = Bases([3, 12])
    bases.extend(1, vectors, energy)
    untouched, basis = bases
    assert untouched.shape == (0, 3)
    _, singular, right = torch.linalg.svd(vectors, full_matrices=False)
    shares = singular.square().cumsum(0) / singular.square().sum()
    assert shares[len(basis) - 1] >= energy > (shares[len(basis) - 2] if len(basis) > 1 else 0)
    torch.testing.assert_close((basis @ right[: len(basis)].T).abs(), torch.eye(len(basis)), atol=1e-4, rtol=0)


def test_a_basis_is_extended_by_what_it_lacks_and_keeps_what_it_has() -> None:
    bases, second = Bases([12]), cloud(40, 12, seed=2)
    bases.extend(0, cloud(40, 12, seed=1), 0.8)
    (before,) = bases
    bases.extend(0, second, 0.97)
    (after,) = bases
    assert torch.equal(after[: len(before)], before)
    torch.testing.assert_close(after @ after.T, torch.eye(len(after)))
    energies = [projected(second, after[:count]).square().sum() / second.square().sum() for count in range(13)]
    assert energies[len(after)] >= 0.97 > energies[len(after) - 1]
    bases.extend(0, second, 0.97)
    assert len(next(iter(bases))) == len(after), "it is enough"


def test_no_direction_is_added_by_rounding() -> None:
    bases = Bases([4])
    bases.extend(0, torch.zeros(5, 4), 1.0)
    assert len(next(iter(bases))) == 0
    flat = cloud(20, 3, seed=0) @ torch.eye(3, 4)
    bases.extend(0, flat, 1.0)
    assert len(next(iter(bases))) == 3
    for seed in (1, 2):
        bases.extend(0, cloud(20, 4, seed), 1.0)
        assert len(next(iter(bases))) == 4


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (1, 1)])
def test_patches_are_what_filters_are_multiplied_with(kernel: int, stride: int) -> None:
    conv = Conv(2, 5, kernel, stride, torch.Generator().manual_seed(0))
    maps = torch.randn(3, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    found = patches(conv, maps.contiguous(memory_format=torch.channels_last))
    expected = conv(maps).movedim(1, -1).reshape(-1, 5)
    torch.testing.assert_close(found @ conv.weight.flatten(1).T, expected)


def test_after_a_step_filters_answer_as_before_to_all_within_the_span(stream: Stream, augment: Augment) -> None:
    method = learner(energy=0.8)
    trainer = Trainer(method, RECIPE, 0)
    trainer.learn(stream[0])
    method.eval()
    images = augment.normalize(stream.test(0).images)
    convs, bases = list(method.convs().values()), list(method.bases)
    stem, basis = convs[0], bases[0]
    inside = projected(patches(stem, images), basis)
    before = [conv.weight.detach().clone() for conv in convs]
    trainer.learn(stream[1])
    for conv, then, span in zip(convs, before, bases, strict=True):
        moved = (conv.weight - then).detach().flatten(1)
        assert 0 < len(span) < span.shape[1]
        torch.testing.assert_close(moved @ span.T, torch.zeros(len(moved), len(span)), atol=2e-6, rtol=0)
        assert moved.abs().max() > 1e-4, "but it has learned"
    torch.testing.assert_close(inside @ stem.weight.flatten(1).T, inside @ before[0].flatten(1).T)
    outside = conv2d(images, stem.weight - before[0], padding=1).square().sum()
    assert 0 < outside < 0.2 * conv2d(images, before[0], padding=1).square().sum()


def test_the_gradient_loses_its_part_within_the_span_and_nothing_else(stream: Stream) -> None:
    method = learner(energy=0.8)
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    method.loss(batch_of(stream[1], torch.arange(12))).backward()
    convs = method.convs().values()
    gradients = [conv.weight.grad.flatten(1).clone() for conv in convs]  # type: ignore[union-attr]
    head = method.heads.of(1).weight.grad.clone()  # type: ignore[union-attr]
    method.before_step()
    for conv, gradient, basis in zip(convs, gradients, method.bases, strict=True):
        assert conv.weight.grad is not None
        expected = gradient @ (torch.eye(basis.shape[1]) - basis.T @ basis)
        torch.testing.assert_close(conv.weight.grad.flatten(1), expected, atol=1e-6, rtol=1e-4)
    assert torch.equal(method.heads.of(1).weight.grad, head)  # type: ignore[arg-type]


def test_bases_hold_a_growing_share_of_what_a_layer_is_given(stream: Stream, augment: Augment) -> None:
    method = learner(energy=0.9, energy_growth=0.06, samples=1000)
    given: list[Tensor] = []
    for conv in method.convs().values():
        conv.register_forward_hook(lambda conv, inputs, _: given.append(patches(conv, inputs[0])))
    trainer = Trainer(method, RECIPE, 0)
    for task, energy in zip(stream, (0.9, 0.96, 1.0), strict=True):
        trainer.learn(task)
        method.eval()
        given.clear()
        method.one_pass(augment.normalize(task.train.images))
        for vectors, basis in zip(given, method.bases, strict=True):
            assert projected(vectors, basis).square().sum() / vectors.square().sum() >= energy - 1e-5
    assert len(next(iter(method.bases))) == 9, "the stem's inputs have 9 pixels, and all of their energy is held"


def test_batch_norm_learns_in_the_first_task_only(stream: Stream) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)

    def norms() -> dict[str, Tensor]:
        convs = {f"{name}.weight" for name in method.convs()}
        return {name: value.clone() for name, value in method.net.state_dict().items() if name not in convs}

    before = norms()
    trainer.learn(stream[0])
    learned = norms()
    assert any(not torch.equal(before[name], value) for name, value in learned.items())
    trainer.learn(stream[1])
    assert all(torch.equal(learned[name], value) for name, value in norms().items())


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"energy": 0}, "--energy 0"),
        ({"energy": 1.1}, "--energy 1.1"),
        ({"energy_growth": -1}, "--energy-growth -1"),
        ({"samples": 0}, "--samples 0"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        GpmSettings(**settings)  # type: ignore[arg-type]
