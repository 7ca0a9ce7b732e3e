import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence
from torch.nn.functional import cross_entropy

from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.experiment.run import state_digest
from sparc.methods import Recipe
from sparc.methods.parts.densities import Densities, divergences, sound_covariances
from sparc.methods.prototypes.seed import SEED, SeedSettings
from sparc.nn.gaussians import ClassGaussians
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT, blobs
from tests.methods.contract import batch_of, batches, begin, new_optimizer, take_steps

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.01, momentum=0.9, weight_decay=0.01)


def learner(seed: int = 0, augment: Augment = AUGMENT, **settings: float) -> SEED:
    small = {"width": 1 / 8, "depth": 2, "features": 4, "experts": 2, **settings}
    return SEED(SeedSettings(**small), 1, (8, 8), augment, seeded(seed, "method"))  # type: ignore[arg-type]


def learned(stream: Stream, tasks: int, **settings: float) -> tuple[SEED, Trainer]:
    method = learner(**settings)
    trainer = Trainer(method, RECIPE, 0)
    for task in stream[:tasks]:
        trainer.learn(task)
    return method, trainer


@pytest.fixture
def pairs(splits: Splits) -> Stream:
    return Stream(splits, [2, 2, 2])


def some_gaussians(classes: int, features: int) -> tuple[Tensor, Tensor]:
    generator = seeded(0, "gaussians")
    means = torch.randn(classes, features, dtype=torch.float64, generator=generator)
    roots = torch.randn(classes, features, features, dtype=torch.float64, generator=generator)
    return means, roots @ roots.mT + 0.1 * torch.eye(features)


def expert_state(method: SEED, number: int) -> dict[str, bytes]:
    state = method.experts.all()[number].net.state_dict()
    return {name: value.numpy().tobytes() for name, value in state.items()}


def test_divergences_are_those_of_torch() -> None:
    means, covariances = some_gaussians(3, 4)
    each = [MultivariateNormal(mean, covariance) for mean, covariance in zip(means, covariances, strict=True)]
    expected = torch.stack([torch.stack([kl_divergence(own, other) for other in each]) for own in each])
    torch.testing.assert_close(divergences(means, covariances), expected)


def test_log_likelihoods_are_those_of_torch() -> None:
    means, covariances = some_gaussians(3, 4)
    points = torch.randn(5, 4, dtype=torch.float64, generator=seeded(1, "points"))
    expected = MultivariateNormal(means, covariances).log_prob(points[:, None])
    ours = Densities.of(means, covariances).log_likelihoods(points)
    torch.testing.assert_close(ours - ours[:, :1], expected - expected[:, :1])


def test_a_class_is_given_a_picture_more_of_the_mean_variance_by_hand() -> None:
    gaussians = ClassGaussians(2, tied=False)
    points = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0], [7.0, 7.0]])
    gaussians.add(points, torch.tensor([0, 0, 0, 0, 1]))
    # Variances are 4/3 and 16/3 in the first class and 0 in the second one, so 5/3 in the mean of both.
    expected = torch.tensor([[[4 / 3 + 5 / 12, 0], [0, 16 / 3 + 5 / 12]], [[5 / 3, 0], [0, 5 / 3]]])
    torch.testing.assert_close(sound_covariances(gaussians), expected.double())


def test_separation_a_second_way(pairs: Stream, augment: Augment) -> None:
    method, _ = learned(pairs, 1)
    (expert,) = method.experts.all()
    task = pairs[1]
    method.eval()
    with torch.no_grad():
        features = expert.net(augment.normalize(task.train.images)).double()
    classes = [features[task.train.labels == label] for label in task.classes]
    found = [points.T.cov() for points in classes]
    variance = torch.stack([covariance.diagonal() for covariance in found]).mean()
    first, second = (
        MultivariateNormal(points.mean(0), covariance + variance / len(points) * torch.eye(4))
        for points, covariance in zip(classes, found, strict=True)
    )
    expected = (kl_divergence(first, second) + kl_divergence(second, first)) / 2
    assert method.separation(expert, task) == pytest.approx(float(expected))


@pytest.mark.parametrize("blind", [0, 1])
def test_the_expert_that_tells_new_classes_apart_is_fine_tuned(pairs: Stream, blind: int) -> None:
    method, _ = learned(pairs, 2)
    with torch.no_grad():
        method.experts.all()[blind].net.head.weight.zero_()
    method.begin_task(pairs[2])
    assert int(method.learning) == 1 - blind
    assert method.learner is method.experts.all()[1 - blind]


def test_of_one_class_nothing_is_told_apart_and_the_first_expert_learns(stream: Stream) -> None:
    method, _ = learned(stream, 2)
    method.begin_task(stream[2])
    assert int(method.learning) == 0


def test_a_new_expert_starts_from_the_first(stream: Stream) -> None:
    method, _ = learned(stream, 1, experts=3)
    method.begin_task(stream[1])
    assert int(method.learning) == 1
    assert expert_state(method, 1) == expert_state(method, 0)
    method, _ = learned(stream, 2, experts=3)
    assert expert_state(method, 1) != expert_state(method, 0)
    method.begin_task(stream[2])
    assert expert_state(method, 2) == expert_state(method, 0)


def test_an_expert_knows_the_classes_since_its_task(stream: Stream, augment: Augment) -> None:
    method, _ = learned(stream, 3)
    first, second = method.experts.all()
    assert (len(first.gaussians), len(second.gaussians)) == (6, 4)
    assert first.gaussians.counts.tolist() == [24] * 6
    task = stream[2]
    for expert in (first, second):
        features = method.predict_batched(expert.net, task.train.images).double()
        torch.testing.assert_close(expert.gaussians.means[-1], features.mean(0))
        torch.testing.assert_close(expert.gaussians.covariances()[-1], features.T.cov())
    logits = method.eval().logits(augment.normalize(task.train.images))
    assert logits.shape == (24, 6)


def test_mirror_images_are_described_where_they_are_learned_from(stream: Stream) -> None:
    method = learner(augment=replace(AUGMENT, flip=True))
    Trainer(method, RECIPE, 0).learn(stream[0])
    (expert,) = method.experts.all()
    assert expert.gaussians.counts.tolist() == [48, 48]
    images = stream[0].train.images[stream[0].train.labels == 0]
    both = method.predict_batched(expert.net, torch.cat((images, images.flip(3)))).double()
    torch.testing.assert_close(expert.gaussians.means[0], both.mean(0))
    torch.testing.assert_close(expert.gaussians.covariances()[0], both.T.cov())


def test_votes_are_averaged_over_the_experts_that_know_a_class(stream: Stream, augment: Augment) -> None:
    method, _ = learned(stream, 3, temperature=3)
    method.eval()
    images = augment.normalize(stream.test(1).images)
    shares = []
    for expert in method.experts.all():
        normal = MultivariateNormal(expert.gaussians.means, sound_covariances(expert.gaussians))
        with torch.no_grad():
            likelihoods = normal.log_prob(expert.net(images).double()[:, None])
        shares.append((likelihoods / 3).softmax(1))
    first, second = shares
    expected = torch.cat((first[:, :2], (first[:, 2:] + second) / 2), 1)
    torch.testing.assert_close(method.logits(images).exp(), expected.float(), rtol=1e-3, atol=1e-6)


def test_fine_tuning_changes_one_expert_and_no_old_gaussian(pairs: Stream) -> None:
    method, trainer = learned(pairs, 2)
    nets = [expert_state(method, number) for number in range(2)]
    known = [expert.gaussians for expert in method.experts.all()]
    old = [(known.means.clone(), known.scatters.clone()) for known in known]
    trainer.learn(pairs[2])
    trained, idle = int(method.learning), 1 - int(method.learning)
    assert expert_state(method, idle) == nets[idle], "not by a byte"
    changed = {name for name, value in expert_state(method, trained).items() if value != nets[trained][name]}
    assert "stem.0.weight" in changed
    assert not any("running" in name for name in changed), "batch norm is in eval mode"
    for gaussians, (means, scatters) in zip(known, old, strict=True):
        assert len(gaussians) == len(means) + 2
        assert torch.equal(gaussians.means[:-2], means)
        assert torch.equal(gaussians.scatters[:-2], scatters)


def test_a_new_expert_gathers_statistics_and_the_others_do_not(stream: Stream) -> None:
    method, trainer = learned(stream, 1)
    before = expert_state(method, 0)
    trainer.learn(stream[1])
    assert expert_state(method, 0) == before
    after = expert_state(method, 1)
    assert all(after[name] != value for name, value in before.items() if name.endswith(("weight", "running_mean")))


def test_the_loss_of_fine_tuning_by_hand(pairs: Stream) -> None:
    method, _ = learned(pairs, 2, alpha=0.7)
    begin(method, pairs[2])
    method.train()
    batch = batch_of(pairs[2], torch.arange(9))
    was = method.learner.net(batch.images).detach()
    with torch.no_grad():
        method.learner.net.head.weight.mul_(1.5)
    now = method.learner.net(batch.images)
    expected = 0.3 * cross_entropy(method.head(now), batch.labels - 4) + 0.7 * (now - was).square().mean()
    torch.testing.assert_close(method.loss(batch), expected)
    assert not torch.allclose(now, was)


def test_a_new_expert_learns_by_cross_entropy_alone(stream: Stream) -> None:
    method, _ = learned(stream, 1)
    begin(method, stream[1])
    method.eval()
    batch = batch_of(stream[1], torch.arange(9))
    expected = cross_entropy(method.head(method.learner.net(batch.images)), batch.labels - 2)
    torch.testing.assert_close(method.loss(batch), expected)


def test_fine_tuning_takes_half_as_long_and_nothing_of_it_is_kept(pairs: Stream) -> None:
    method, _ = learned(pairs, 2)
    assert (len(method.before), method.head.out_features) == (0, 0)
    assert [phase.recipe for phase in method.phases(pairs[1], SEED.recipe)] == [SEED.recipe]
    method.begin_task(pairs[2])
    (phase,) = method.phases(pairs[2], SEED.recipe)
    assert (phase.name, phase.recipe.epochs, phase.recipe.weight_decay) == ("fine-tune", 100, 0)
    assert (len(method.before), method.head.out_features) == (1, 2)
    method.end_task(pairs[2])
    assert (len(method.before), method.head.out_features) == (0, 0)


def test_a_state_from_the_middle_of_fine_tuning_goes_on_to_the_same_bits(pairs: Stream) -> None:
    original, _ = learned(pairs, 2)
    begin(original, pairs[2])
    optimizer = take_steps(original, original.phases(pairs[2], RECIPE)[0], batches(pairs[2], AUGMENT, 3))
    resumed = learner(seed=1)
    resumed.load_state_dict(original.state_dict())
    assert resumed.learning == original.learning
    (phase,) = resumed.phases(pairs[2], RECIPE)
    assert phase.name == "fine-tune"
    again = new_optimizer(resumed, phase)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for method, going_on in ((original, optimizer), (resumed, again)):
        take_steps(method, phase, batches(pairs[2], AUGMENT, 2), going_on)
        method.end_task(pairs[2])
    assert state_digest(resumed) == state_digest(original)


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
        ({"experts": 0}, "--experts 0"),
        ({"features": 0}, "--features 0"),
        ({"alpha": 1.5}, "--alpha 1.5"),
        ({"temperature": 0}, "--temperature 0"),
    ],
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        SeedSettings(**settings)  # type: ignore[arg-type]
