"""Chorus: what its working memories inherit, and what they come to know of later classes."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Generator

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.chorus import Chorus
from sparc.methods.sparc.settings import ChorusSettings
from sparc.nn.chorus import Voice
from sparc.nn.gaussians import ClassGaussians
from sparc.nn.inference import InferenceNet
from sparc.nn.readout import Layer, Readout
from sparc.nn.roll import TEMPERATURE, Say, Weights
from sparc.train import Trainer
from tests.methods.contract import new


def learned(stream: Stream, tasks: int = 2, **settings: object) -> Chorus:
    method = new(Chorus, **settings)
    assert isinstance(method, Chorus)
    trainer = Trainer(method, Recipe(epochs=1, optimizer="muon", lr=0.02), seed=0)
    for task in range(tasks):
        trainer.learn(stream[task])
    return method


def test_a_working_memory_starts_as_the_newest_is(stream: Stream) -> None:
    method = learned(stream, tasks=1)
    method.begin_task(stream[1])
    older, newer = (dict(memory.named_parameters()) for memory in method.net.memories())
    same = {name: torch.equal(newer[name], older[name]) for name in older if not name.startswith("head")}
    assert all(same.values())
    assert len(same) > 10


def test_it_can_be_made_to_start_from_nothing(stream: Stream) -> None:
    method = learned(stream, tasks=1, inherit="nothing")
    method.begin_task(stream[1])
    first, second = method.net.memories()
    assert not torch.equal(first.stem.pointwise, second.stem.pointwise)


def test_it_can_start_as_the_one_that_tells_the_new_classes_apart_best(stream: Stream) -> None:
    method = learned(stream, tasks=2, inherit="alike")
    first, second = method.net.memories()
    with torch.no_grad():
        second.stem.norm.weight.zero_()  # which is blind from now on
    method.begin_task(stream[1])
    newest = method.net.memories()[-1]
    assert torch.equal(newest.stem.pointwise, first.stem.pointwise)
    assert not torch.equal(newest.stem.pointwise, second.stem.pointwise)


def test_frozen_memories_describe_later_classes(stream: Stream) -> None:
    method = learned(stream, tasks=3)
    sizes = [len(stream.classes(task)) for task in range(3)]
    *memories, patches = method.net.all_voices()
    assert sizes[2] == 1
    assert [len(voice.gaussians) for voice in memories] == [sum(sizes[task:]) for task in range(2)], "one needs none"
    pictures = [int((stream[task].train.labels == label).sum()) for task in range(3) for label in stream.classes(task)]
    assert memories[0].gaussians.counts.tolist() == patches.gaussians.counts.tolist() == pictures


def test_the_semantic_memory_and_so_old_features_stay_as_they_are(stream: Stream) -> None:
    method = learned(stream, tasks=1)
    images = method.augment.normalize(stream[0].train.images[:9])
    method.eval()
    before = method.net.pooled(images)[0]
    Trainer(method, Recipe(epochs=1, optimizer="muon", lr=0.02), seed=0).learn(stream[1])
    method.eval()
    assert torch.equal(method.net.pooled(images)[0], before)


@pytest.mark.parametrize("settings", [{}, {"statistics": 0}, {"statistics": 16}, {"patches": 0}, {"mirror": False}])
def test_the_quick_answer_is_the_nets_own(stream: Stream, settings: dict[str, object]) -> None:
    method = learned(stream, **settings)
    images = method.augment.normalize(stream[0].train.images[:9])
    with torch.no_grad():
        torch.testing.assert_close(InferenceNet.of(method.net)(images), method.net.eval()(images), atol=1e-4, rtol=1e-4)


def test_without_statistics_heads_answer_alone(stream: Stream) -> None:
    method = learned(stream, statistics=0, patches=0)
    images = method.augment.normalize(stream[0].train.images[:9])
    method.eval()
    heads = torch.cat([method.net.task_logits(images, task) for task in range(2)], dim=1)
    torch.testing.assert_close(method.logits(images), heads, atol=1e-4, rtol=1e-4)
    assert method.parameters_by_owner()["statistics"] == 0


def test_answers_with_parts_left_out_are_those_of_nets_without_them(stream: Stream) -> None:
    method = learned(stream, mirror=False).requires_grad_(False)
    method.net.portions = [portion._replace(weights=Weights(0.3, 2.0, 0.5)) for portion in method.net.portions]
    images = method.eval().augment.normalize(stream[0].train.images[:9])
    found = method.logits_by_part(images)
    torch.testing.assert_close(method.logits(images), method.net(images), atol=1e-4, rtol=1e-4)
    heads = torch.cat([method.net.task_logits(images, task) for task in range(2)], dim=1)
    torch.testing.assert_close(found["heads alone"], heads, atol=1e-4, rtol=1e-4)
    common, voice = method.net.common, method.net.common_voice
    assert common is not None
    assert voice is not None
    weight, bias = voice.discriminants()
    by_patches = ((common(images) @ weight.T + bias) / TEMPERATURE).log_softmax(1)
    torch.testing.assert_close(found["patches alone"], by_patches, atol=1e-4, rtol=1e-4)
    method.net.portions = [portion._replace(weights=None) for portion in method.net.portions]
    torch.testing.assert_close(found["with usual weights"], method.net(images), atol=1e-4, rtol=1e-4)


def test_weights_that_were_not_found_are_no_part(stream: Stream) -> None:
    method = learned(stream)
    images = method.eval().augment.normalize(stream[0].train.images[:9])
    assert "with usual weights" in method.logits_by_part(images)
    method.net.portions = [portion._replace(weights=None) for portion in method.net.portions]
    assert "with usual weights" not in method.eval().logits_by_part(images)


def test_working_memories_and_patches_can_each_be_left_out_of_what_is_known_of_classes(stream: Stream) -> None:
    method = learned(stream, weigh=False).requires_grad_(False)
    images = method.eval().augment.normalize(stream[0].train.images[:9])
    found = method.logits_by_part(images)
    assert "with usual weights" not in found
    common, voice = method.net.common, method.net.common_voice
    method.net.common, method.net.common_voice = None, None
    torch.testing.assert_close(found["without patches"], method.net(images), atol=1e-4, rtol=1e-4)
    method.net.common, method.net.common_voice, method.net.voices = common, voice, torch.nn.ModuleList()
    method.net.statistics = 0
    torch.testing.assert_close(found["without statistics"], method.net(images), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"patches": 0, "weigh": False}, {"heads alone"}),
        ({"statistics": 0, "weigh": False}, {"heads alone", "patches alone"}),
        ({"statistics": 0, "patches": 0}, set()),
    ],
)
def test_only_parts_that_are_there_can_be_left_out(stream: Stream, settings: dict[str, object], left: set[str]) -> None:
    method = learned(stream, **settings).eval()
    images = method.augment.normalize(stream[0].train.images[:9])
    assert method.logits_by_part(images).keys() == left


def test_pictures_that_nothing_was_trained_on_say_what_counts_how_much(stream: Stream) -> None:
    method, unweighed = learned(stream), learned(stream, weigh=False)
    assert unweighed.net.roll.weights == Weights()
    assert None not in [portion.weights for portion in method.net.portions]
    task = stream[1]
    with torch.no_grad():
        # Now it knows nothing, and is loud.
        method.net.memories()[-1].head.weight.normal_(std=5000, generator=Generator().manual_seed(0))
    features = [*method.described(task.train)]
    method.net.weigh(features, task.train.labels - task.classes.start)
    found = [portion.weights for portion in method.net.portions]
    assert found[1] is not None
    assert found[1].heads < 0.5 * Weights().heads
    again = new(Chorus)
    again.load_state_dict(method.state_dict())
    assert isinstance(again, Chorus)
    assert [portion.weights for portion in again.net.portions] == found


def test_spared_pictures_are_described_and_not_trained_on(stream: Stream) -> None:
    method, task = learned(stream, tasks=1), stream[0]
    spared = method.spared(task)
    assert 0 < int(spared.sum()) <= len(task.train) // 8
    (phase,) = method.phases(task, Recipe())
    assert phase.images is not None
    assert torch.equal(phase.images().images, task.train.images[~spared])
    assert int(method.net.all_voices()[0].gaussians.counts.sum()) == len(task.train)
    assert not new_and_begun(stream, weigh=False).spared(task).any()
    assert not new_and_begun(stream, statistics=0, patches=0).spared(task).any(), "there is nothing to weigh"


def new_and_begun(stream: Stream, **settings: object) -> Chorus:
    method = new(Chorus, **settings)
    assert isinstance(method, Chorus)
    method.begin_task(stream[0])
    return method


def test_discriminants_are_those_of_the_textbook() -> None:
    generator = Generator().manual_seed(0)
    labels = torch.arange(3000) % 3
    features = torch.randn(3000, 5, generator=generator) @ torch.randn(5, 5, generator=generator) + labels[:, None]
    gaussians = ClassGaussians(5)
    for part in range(3):
        gaussians.add(features[part::3], labels[part::3])
    weight, bias = gaussians.discriminants()
    found = (features.double() @ weight.T + bias).log_softmax(1)
    expected = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.01, priors=np.full(3, 1 / 3)).fit(features, labels)
    assert (found.argmax(1).numpy() == expected.predict(features)).mean() > 0.99
    np.testing.assert_allclose(found, expected.predict_log_proba(features), atol=0.1)


def test_discriminants_are_finite_with_fewer_pictures_than_features() -> None:
    gaussians = ClassGaussians(50)
    gaussians.add(torch.randn(4, 50, generator=Generator().manual_seed(0)), torch.tensor([0, 0, 1, 1]))
    weight, bias = gaussians.discriminants()
    assert weight.isfinite().all()
    assert bias.isfinite().all()


@pytest.mark.parametrize("name", ["statistics", "patches"])
def test_a_number_of_features_below_0_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"--{name} -1"):
        ChorusSettings(**{name: -1})


def test_an_unknown_heritage_is_refused() -> None:
    with pytest.raises(InputError, match="--inherit none is not known: choose newest, alike, nothing"):
        ChorusSettings(inherit="none")  # type: ignore[arg-type]


def test_statistics_stay_in_double_precision_whatever_becomes_of_the_net(stream: Stream) -> None:
    method = learned(stream, tasks=1)
    assert method.net.half().all_voices()[0].gaussians.means.dtype is torch.float64


def test_projections_are_the_same_in_all_versions() -> None:
    """Files of models hold what was projected, and not the projection."""
    signs = Voice(features=16, kept=4, seed=1).projection().sign()
    assert signs[:3].tolist() == [[1, 1, -1, 1], [1, 1, 1, 1], [1, -1, -1, -1]]


def test_a_head_that_is_trusted_less_is_not_outvoted_whatever_it_says() -> None:
    """What two heads say of a picture alike counts alike, though one has learned from fewer pictures."""
    first, second = (
        Layer(torch.eye(2), torch.zeros(2), Say(classes, trust)) for classes, trust in (([0, 1], 0.25), ([2, 3], 1.0))
    )
    undecided = Layer(torch.zeros(4, 1), torch.zeros(4), Say([0, 1, 2, 3]))
    said = torch.tensor([[3.0, 0.0]])
    scores = Readout(4, [first, second], [undecided], [[0, 1], [2, 3]])([said, said, torch.zeros(1, 1)])
    torch.testing.assert_close(scores[:, :2], scores[:, 2:])
