"""One suite over every registered method."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.stream import Stream, Task
from sparc.errors import InputError
from sparc.experiment.run import state_digest
from sparc.methods import METHODS, Batch, Method, Phase, Recipe
from sparc.methods.masks.packnet import PackNet
from sparc.methods.parts.buffer import Buffer
from sparc.methods.parts.costs import buffer_bytes
from sparc.nn import GrowingNet, SparcNet
from sparc.nn.progressive import ProgressiveNet
from sparc.train import Trainer, count_kept, evaluate, measure_work
from sparc.train.trainer import told_to
from tests.methods.contract import BUFFER, batch_of, begin, keeps_pictures, new, recipe, small_settings, take_steps


def nets(kind: type[Method]) -> list[dict[str, str]]:
    """Settings for each backbone that it can have."""
    choice = "backbone" in {field.name for field in fields(kind.Settings)}
    return [{"backbone": backbone} for backbone in ("resnet", "separable")] if choice else [{}]


NETS = [(kind, net) for kind in METHODS.classes.values() for net in nets(kind)]


@pytest.mark.parametrize(
    ("kind", "net"),
    [
        # The other net is much the same to all who can have it.
        pytest.param(kind, net, marks=pytest.mark.long if "separable" in net.values() and kind.name != "sgd" else ())
        for kind, net in NETS
    ],
    ids=[" ".join((kind.name, *net.values())) for kind, net in NETS],
)
def test_it_learns_a_task_well_above_chance(kind: type[Method], net: dict[str, str], coloured: Stream) -> None:
    """On every backbone, and in colour: maps of several channels can lie in memory in two ways."""
    task, augment = coloured[0], Augment.fitted(coloured[0].train)
    method = new(kind, augment=augment, **net)
    quick = replace(kind.recipe, epochs=16, batch_size=8, lr=max(kind.recipe.lr, 0.005))  # PackNet's needs more steps
    Trainer(method, quick, seed=0).learn(task)
    score = evaluate(method, [coloured.test(0)], [task.classes])
    assert score.task_il[0] > 80
    assert score.class_il == (None if kind.needs_task_id else score.task_il), "with one task both are the same"


def test_logits_cover_all_classes_seen_in_their_order(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    trainer = Trainer(method, recipe(kind, epochs=1), seed=0)
    for task in stream:
        trainer.learn(task)
        images = augment.normalize(stream.test(task.index).images)
        logits = method.eval().logits(images)
        assert logits.shape == (len(images), task.classes.stop)
        before = state_digest(method)
        by_part = method.logits_by_part(images).values()
        assert not (kind.needs_task_id and by_part)
        assert {each.shape for each in by_part} <= {logits.shape}
        assert all(each.isfinite().all() for each in by_part)
        assert state_digest(method) == before, "asking changes nothing"


def test_same_seed_same_bits_and_the_global_generator_plays_no_part(
    kind: type[Method], stream: Stream, augment: Augment
) -> None:
    digests = []
    for seed in (0, 0, 1):
        state = torch.manual_seed(len(digests)).get_state()
        method = new(kind, seed)
        trainer = Trainer(method, recipe(kind, epochs=1), seed)
        for task in stream[:2]:
            trainer.learn(task)
        digests.append(state_digest(method))
        assert torch.equal(state, torch.get_rng_state()), "it is left alone"
    assert digests[0] == digests[1] != digests[2]


def test_prediction_changes_nothing(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    Trainer(method, recipe(kind, epochs=1), seed=0).learn(stream[0])
    before = state_digest(method)
    evaluate(method, [stream.test(0)], [stream.classes(0)])
    assert state_digest(method) == before


def test_it_is_handed_only_pictures_of_the_task_at_hand(
    kind: type[Method], stream: Stream, augment: Augment, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = new(kind)
    seen: list[int] = []
    expected: dict[int, int] = {}
    buffers = [module for module in method.modules() if isinstance(module, Buffer)]

    class Watched:
        def __init__(self, phase: Phase, task: Task) -> None:
            self.loss = phase.loss or method.loss
            self.allowed = set(task.classes)
            if kind.sees_old_tasks:
                self.allowed |= set(range(task.classes.stop))
            if phase.images:  # which may join what is kept
                self.allowed |= {int(label) for each in buffers for label in each.labels}

        def __call__(self, batch: Batch) -> Tensor:
            assert set(batch.labels.tolist()) <= self.allowed
            seen.append(len(batch.labels))
            return self.loss(batch)

    phases = method.phases

    def watched(task: Task, how: Recipe) -> Sequence[Phase]:
        assert (task.seen is not None) == kind.sees_old_tasks
        assert (task.tasks is not None) == ("tasks" in kind.knows_ahead)
        assert (task.all_classes is not None) == ("classes" in kind.knows_ahead)
        asked = phases(task, how)
        counts = [phase.recipe.epochs * len(phase.images() if phase.images else task.train) for phase in asked]
        expected[task.index] = sum(counts)
        return [replace(phase, loss=Watched(phase, task)) for phase in asked]

    monkeypatch.setattr(method, "phases", watched)
    trainer = Trainer(method, recipe(kind, epochs=1), seed=0)
    for task in stream:
        trainer.learn(task)
    assert sum(seen) == sum(expected.values())


def test_what_it_keeps_of_pictures_is_what_it_says(kind: type[Method], stream: Stream, augment: Augment) -> None:
    """No training picture's bytes are anywhere in the state of a method that claims to keep none."""
    method = new(kind)
    trainer = Trainer(method, recipe(kind, epochs=1), seed=0)
    pictures: set[bytes] = set()
    for task in stream:
        trainer.learn(task)
        pictures |= {image.numpy().tobytes() for image in task.train.images}
        pictures |= {image.numpy().tobytes() for image in augment.normalize(task.train.images)}
        state = [value.detach().numpy().tobytes() for value in method.state_dict().values()]
        kept = sum(picture in held for picture in pictures for held in state)
        assert (kept > 0) == (buffer_bytes(method) > 0) == keeps_pictures(kind)
        assert kept <= BUFFER


def test_a_buffer_never_exceeds_its_size(kind: type[Method], stream: Stream, augment: Augment) -> None:
    if not keeps_pictures(kind):
        return
    method = new(kind)
    (buffer,) = (module for module in method.modules() if isinstance(module, Buffer))
    after_step = method.after_step

    def watched() -> None:
        after_step()
        assert len(buffer) <= BUFFER
        held = {name: value for name, value in buffer.named_buffers() if not name.startswith("seen")}
        assert buffer_bytes(method) == sum(value.nbytes for value in held.values())

    method.after_step = watched  # type: ignore[method-assign]
    Trainer(method, recipe(kind, epochs=1), seed=0).run(stream)
    assert len(buffer) == BUFFER
    assert buffer.seen == sum(stream.train_counts())


def test_what_is_frozen_does_not_change_by_a_byte(kind: type[Method], stream: Stream, augment: Augment) -> None:
    if not kind.frozen_parts:
        return
    method = new(kind)
    trainer = Trainer(method, replace(recipe(kind), weight_decay=0.01), seed=0)
    after: list[dict[str, bytes]] = []
    for task in stream:
        trainer.learn(task)
        for number, before in enumerate(after):
            assert before, "there is something to compare"
            assert frozen_by(method, number) == before
        after.append(frozen_by(method, task.index))


def frozen_by(method: Method, task: int) -> dict[str, bytes]:
    """The tensors that a task has left behind for good."""
    state = method.state_dict()
    own = tuple(f"{part}.{task}." for part in method.frozen_parts)
    mine = {name: value for name, value in state.items() if name.startswith(own)}
    if isinstance(method, PackNet):
        packed = zip(method.named_weights().items(), method.owners, strict=True)
        mine |= {name: weight.detach()[owner == task + 1] for (name, weight), owner in packed}
        mine |= {name: value for name, value in state.items() if "running" in name and task == 0}
    return {name: value.numpy().tobytes() for name, value in mine.items()}


def test_the_numbers_it_keeps_are_those_of_its_state(kind: type[Method], stream: Stream) -> None:
    method = new(kind)
    Trainer(method, recipe(kind, epochs=1), seed=0).run(stream)
    buffers = [f"{name}." for name, module in method.named_modules() if isinstance(module, Buffer)]
    kept = [
        value
        for name, value in method.state_dict().items()
        if value.ndim and not name.endswith(("running_mean", "running_var", "_extra_state"))
        # What is measured for a report is a note, and pictures with what belongs to them are counted in bytes.
        if name not in method.notes and not name.startswith(tuple(buffers))
    ]
    numbers = sum(value.numel() for value in kept)
    assert sum(method.parameters_by_owner().values()) == numbers
    if kind.keeps_by_pictures:
        return
    expected = count_kept(kind, stream.sizes, small_settings(kind), 1, (8, 8))
    assert expected == (numbers, sum(value.nbytes for value in kept)), "known without learning anything"


def test_counted_passes_are_those_of_a_step(
    kind: type[Method], stream: Stream, augment: Augment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures that go through a net at a step, in multiples of the batch."""
    known = {field.name for field in fields(kind.Settings)}
    more = {name: value for name, value in (("buffer_size", 64), ("replay_batch", 32)) if name in known}
    usual = type(kind.__name__, (kind,), {"recipe": replace(kind.recipe, batch_size=32)})
    method = new(kind, **more)
    trainer = Trainer(method, recipe(kind, epochs=1), seed=0)
    trainer.learn(stream[0])
    begin(method, told_to(method, stream[1]))
    passed: list[int] = []
    for net in (module for module in method.modules() if isinstance(module, GrowingNet)):
        monkeypatch.setattr(net, "features", counting(net.features, passed))
    for net in (module for module in method.modules() if isinstance(module, SparcNet | ProgressiveNet)):
        monkeypatch.setattr(net, "task_logits", counting(net.task_logits, passed))
    work = measure_work(usual, 2, small_settings(kind, **more), 1, (8, 8))
    phases = method.phases(stream[1], recipe(kind))
    if not phases:
        assert (work.forward, work.backward) == (0, 0), "nothing is trained after the first task"
        return
    counts = []
    for phase in phases:
        passed.clear()
        take_steps(method, phase, iter([batch_of(stream[1], torch.arange(32))]))
        counts.append(sum(passed) / 32)
    assert work.forward == pytest.approx(max(counts), abs=0.02, rel=0.04), "beside similarities"
    assert work.backward >= 1
    assert work.total > 0.5, "later tasks may be shorter"


def counting(answer: Callable[..., Tensor], passed: list[int]) -> Callable[..., Tensor]:
    def counted_answer(images: Tensor, *rest: Any) -> Tensor:
        passed.append(len(images))
        return answer(images, *rest)

    return counted_answer


def test_it_learns_in_bfloat16(kind: type[Method], stream: Stream, augment: Augment) -> None:
    method = new(kind)
    trainer = Trainer(method, recipe(kind, epochs=1), seed=0, bf16=True)
    for task in stream[:2]:
        trainer.learn(task)
    assert all(parameter.dtype == torch.float32 and parameter.isfinite().all() for parameter in method.parameters())


def test_bad_settings_are_refused(kind: type[Method]) -> None:
    known = {field.name for field in fields(kind.Settings)} & {"width", "depth", "buffer_size"}
    for name in known:
        with pytest.raises(InputError, match=f"--{name.replace('_', '-')} 0"):
            kind.Settings(**{name: 0})


def test_it_says_what_it_is(kind: type[Method]) -> None:
    assert kind.title
    assert kind.kind
    assert kind.paper
    module = __import__(kind.__module__, fromlist=["__doc__"])
    assert len(module.__doc__ or "") > 60, "the file's docstring says the idea and the paper"


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown method “sparq”: did you mean sparc"):
        METHODS.find("sparq")
