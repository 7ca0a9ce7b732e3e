"""Phases and recipes: what a method may ask of the trainer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from sparc.data.stream import Stream, Task
from sparc.methods import Batch, ParameterGroup, Phase, Recipe, Settings
from sparc.train import Trainer
from tests.examples import AUGMENT
from tests.train.least import RECIPE, Linear, Watcher


class Sloping(Linear):
    """Its parameters go down by the rate at every step."""

    def begin_task(self, task: Task) -> None:
        super().begin_task(task)
        self.late = nn.Parameter(torch.zeros(1))

    def loss(self, batch: Batch) -> Tensor:
        return 3 * self.heads[-1].bias[0] + self.late.sum()


def test_phases_have_their_own_parameters_loss_epochs_and_rate(stream: Stream) -> None:
    class Two(Linear):
        def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
            head = self.heads[-1]
            return [
                Phase(replace(recipe, epochs=1), "weights", parameters=[head.weight]),
                Phase(replace(recipe, epochs=3, lr=0.5), "bias", parameters=[head.bias], loss=self.bias_loss),
            ]

        def bias_loss(self, batch: Batch) -> Tensor:
            assert torch.equal(self.heads[-1].weight, self.after_first)
            return self.heads[-1].bias.sum()

        def after_step(self) -> None:
            if not self.heads[-1].bias.any():
                self.after_first = self.heads[-1].weight.detach().clone()

    method, watcher = Two(Settings(), 1, (8, 8), AUGMENT, None), Watcher()
    Trainer(method, replace(RECIPE, batch_size=100), 0, watcher).learn(stream[0])
    assert method.heads[0].weight.any(), "the first phase trained the weights"
    assert method.heads[0].bias.tolist() == [-1.5, -1.5], "three steps of .5 down a slope of 1"
    assert [(r.phase, r.epoch, r.epochs) for r in watcher.epochs] == [
        ("weights", 1, 1),
        ("bias", 1, 3),
        ("bias", 2, 3),
        ("bias", 3, 3),
    ]


def test_phases_may_depend_on_what_was_learned_and_bring_their_own_pictures(stream: Stream) -> None:
    class Rounds(Linear):
        """Learns from the first picture alone, until it has had three rounds of it."""

        rounds = 0

        def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
            one = Phase(recipe, "round", end=self.count, images=lambda: task.train.take(torch.tensor([0, 1])))
            return [one] * min(self.rounds + 1, 3)

        def count(self) -> None:
            self.calls.append("round over")
            self.rounds += 1

        def loss(self, batch: Batch) -> Tensor:
            assert len(batch.labels) == 2
            return super().loss(batch)

    method = Rounds(Settings(), 1, (8, 8), AUGMENT, None)
    Trainer(method, replace(RECIPE, epochs=1), 0).learn(stream[0])
    assert method.calls == ["begin 0", *["loss last", "step", "round over"] * 3, "end 0"]


def test_a_task_may_have_no_phase_at_all(stream: Stream) -> None:
    class Idle(Linear):
        def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
            return []

    method = Idle(Settings(), 1, (8, 8), AUGMENT, None)
    Trainer(method, RECIPE, 0).run(stream)
    assert method.calls == [call for index in range(3) for call in (f"begin {index}", f"end {index}")]


def test_what_learns_is_set_after_every_hook(stream: Stream) -> None:
    class Hooked(Linear):
        def set_trainable(self) -> None:
            self.calls.append("set")

        def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
            return [Phase(recipe, begin=lambda: self.calls.append("in"), end=lambda: self.calls.append("out"))]

    method = Hooked(Settings(), 1, (8, 8), AUGMENT, None)
    Trainer(method, Recipe(epochs=1, batch_size=100), 0).learn(stream[0])
    assert method.calls == ["begin 0", "set", "in", "set", "loss last", "step", "out", "set", "end 0", "set"]


def test_parameter_groups_have_their_own_rates_and_decay(stream: Stream) -> None:
    class Grouped(Sloping):
        def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
            late = ParameterGroup([self.late], lr_scale=0.1, weight_decay=0)
            return [Phase(recipe, parameters=[self.heads[-1].bias, late])]

    method = Grouped(Settings(), 1, (8, 8), AUGMENT, None)
    Trainer(method, Recipe(epochs=2, batch_size=100, lr=1.0, weight_decay=0.5), 0).learn(stream[0])
    assert method.heads[0].bias[0].item() == pytest.approx(-3 - 3 + 0.5 * 3), "the decay takes half of it back"
    assert method.late.item() == pytest.approx(-0.2)


@pytest.mark.parametrize(("clip", "moves"), [({"clip_value": 2.0}, (-2, -1)), ({"clip_norm": 1.0}, (-0.9487, -0.3162))])
def test_gradients_are_clipped(clip: dict[str, float], moves: tuple[float, float], stream: Stream) -> None:
    method = Sloping(Settings(), 1, (8, 8), AUGMENT, None)
    Trainer(method, Recipe(epochs=1, batch_size=100, lr=1.0, **clip), 0).learn(stream[0])
    assert (method.heads[0].bias[0].item(), method.late.item()) == pytest.approx(moves, abs=1e-4)


def test_the_rate_rises_and_falls_step_by_step(stream: Stream) -> None:
    method = Sloping(Settings(), 1, (8, 8), AUGMENT, None)
    recipe = Recipe(epochs=3, batch_size=12, lr=1.0, schedule="linear", lr_warm_up=1)
    Trainer(method, recipe, 0).learn(stream[0])  # 48 pictures, 4 steps an epoch
    at = [(step + 0.5) / 4 for step in range(12)]
    assert method.late.item() == pytest.approx(-sum(min(1, share) * (1 - share / 3) for share in at))


def test_gradients_can_be_changed_before_the_step(stream: Stream) -> None:
    class Turned(Sloping):
        def before_step(self) -> None:
            assert self.late.grad is not None
            self.late.grad.neg_()

    method = Turned(Settings(), 1, (8, 8), AUGMENT, None)
    Trainer(method, Recipe(epochs=1, batch_size=100, lr=1.0), 0).learn(stream[0])
    assert method.late.item() == 1


def test_labels_are_smoothed(stream: Stream) -> None:
    class Watching(Linear):
        def loss(self, batch: Batch) -> Tensor:
            logits = self.logits(batch.images)
            own = nn.functional.cross_entropy(logits, batch.labels, label_smoothing=0.2)
            assert torch.equal(batch.cross_entropy(logits), own)
            return own

    Trainer(Watching(Settings(), 1, (8, 8), AUGMENT, None), replace(RECIPE, label_smoothing=0.2), 0).learn(stream[0])
