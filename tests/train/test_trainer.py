from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import METHODS, Batch, Phase, Recipe, Settings
from sparc.train import Trainer, evaluate, seeded
from sparc.train.evaluate import evaluate_by_part
from sparc.train.optimizer import new_optimizer
from sparc.train.trainer import in_batches
from tests.examples import AUGMENT
from tests.train.least import RECIPE, Linear, Watcher, linear

AS_THEY_ARE = Augment((0.0,), (1 / 255,))


def test_hooks_are_called_in_order(stream: Stream, augment: Augment) -> None:
    method = linear()
    Trainer(method, replace(RECIPE, batch_size=100), seed=0).learn(stream[0])
    assert method.calls == ["begin 0", "loss", "step", "loss last", "step", "end 0"]


def test_the_schedule_sets_the_rate_of_every_epoch(stream: Stream, augment: Augment) -> None:
    class Slope(Linear):
        """Its bias goes down by the learning rate at every step."""

        def loss(self, batch: Batch) -> Tensor:
            return self.heads[-1].bias.sum()

    method = Slope(Settings(), 1, (8, 8), AUGMENT, None)
    recipe = Recipe(epochs=4, batch_size=100, lr=1.0, schedule="cosine")
    Trainer(method, recipe, 0).learn(stream[0])
    assert method.heads[0].bias[0].item() == pytest.approx(-sum(recipe.lr_at(epoch) for epoch in range(4)))


def test_should_stop_makes_the_next_epoch_the_last(stream: Stream, augment: Augment) -> None:
    method, watcher = linear(), Watcher()
    recipe = Recipe(epochs=9, batch_size=100, schedule="cosine")
    Trainer(method, recipe, 0, watcher, should_stop=lambda task: len(watcher.epochs) == 3).learn(stream[0])
    assert method.calls.count("loss") == 3
    assert method.calls.count("loss last") == 1
    assert (watcher.epochs[-1].epoch, watcher.epochs[-1].epochs) == (4, 4)


def test_training_pictures_are_augmented_and_test_pictures_are_not(stream: Stream) -> None:
    seen: list[Tensor] = []

    class Watching(Linear):
        def loss(self, batch: Batch) -> Tensor:
            seen.append(batch.images)
            return super().loss(batch)

    augment = Augment((0.0,), (1 / 255,), padding=4)
    Trainer(Watching(Settings(), 1, (8, 8), augment, None), replace(RECIPE, batch_size=100), 0).learn(stream[0])
    raw_images = {image.numpy().tobytes() for image in stream[0].train.images.float()}
    shown = [image.round().numpy().tobytes() in raw_images for image in torch.cat(seen)]
    assert sum(shown) < len(shown) / 4


def test_one_picture_is_not_enough(stream: Stream, augment: Augment) -> None:
    task = stream[0]
    lonely = replace(task, train=task.train.take(torch.tensor([0])))
    with pytest.raises(InputError, match="task 1 has one picture to train from"):
        Trainer(linear(), RECIPE, 0).learn(lonely)


def test_an_epoch_takes_every_picture_once_in_another_order(stream: Stream, augment: Augment) -> None:
    seen: list[bytes] = []

    class Watching(Linear):
        def loss(self, batch: Batch) -> Tensor:
            seen.extend(image.numpy().tobytes() for image in batch.raw_images)
            return super().loss(batch)

    Trainer(Watching(Settings(), 1, (8, 8), AUGMENT, None), RECIPE, 0).learn(stream[0])
    count = len(stream[0].train)
    assert sorted(seen[:count]) == sorted(seen[count:]) == sorted(x.numpy().tobytes() for x in stream[0].train.images)
    assert seen[:count] != seen[count:]


@pytest.mark.parametrize(
    ("count", "batch", "sizes"), [(8, 4, [4, 4]), (9, 4, [4, 5]), (10, 4, [4, 4, 2]), (3, 4, [3]), (1, 4, [1])]
)
def test_no_batch_of_one_where_it_can_be_helped(count: int, batch: int, sizes: list[int]) -> None:
    assert [len(index) for index in in_batches(torch.arange(count), batch)] == sizes


def test_progress_goes_up_to_the_end(stream: Stream, augment: Augment) -> None:
    watcher = Watcher()
    reports = Trainer(linear(), RECIPE, 0, watcher).run(stream)
    shares = [report.done for report in watcher.epochs]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert sum(report.epoch_over for report in watcher.epochs) == 2 * len(stream)
    assert all(report.images_per_second > 0 for report in watcher.epochs)
    assert watcher.stages == reports
    assert [len(report.test.class_il) for report in reports] == [1, 2, 3]


def test_validation_pictures_are_tested_but_not_learned(splits: Splits, augment: Augment) -> None:
    stream = Stream(splits, [3, 3], validation=0.5)
    reports = Trainer(linear(), RECIPE, 0).run(stream)
    assert reports[-1].validation is not None
    assert [sum(row) for row in reports[-1].validation.task_confusion] == [len(task.validation) for task in stream]


def test_a_loss_that_is_no_number_stops_with_task_epoch_and_step(stream: Stream, augment: Augment) -> None:
    class Breaking(Linear):
        def loss(self, batch: Batch) -> Tensor:
            loss = super().loss(batch)
            return loss * float("nan") if self.calls.count("loss last") == 2 and len(self.heads) == 2 else loss

    method = Breaking(Settings(), 1, (8, 8), AUGMENT, None)
    trainer = Trainer(method, RECIPE, 0)
    method.calls.clear()
    trainer.learn(stream[0])
    method.calls.clear()
    with pytest.raises(InputError, match="the loss is nan in task 2, epoch 2, step 2: lower --lr"):
        trainer.learn(stream[1])


PLAIN = {
    "adam": (Recipe(optimizer="adam", lr=0.1, weight_decay=0.1), torch.optim.Adam, {}),
    "adamw": (Recipe(optimizer="adamw", lr=0.1, weight_decay=0.1), torch.optim.AdamW, {}),
    "sgd": (Recipe(momentum=0.9, lr=0.1, weight_decay=0.1), torch.optim.SGD, {"momentum": 0.9}),
    "nesterov": (
        Recipe(momentum=0.9, nesterov=True, lr=0.1, weight_decay=0.1),
        torch.optim.SGD,
        {"momentum": 0.9, "nesterov": True},
    ),
}


@pytest.mark.parametrize(("recipe", "kind", "more"), PLAIN.values(), ids=PLAIN)
def test_optimizers_step_as_torchs_plain_ones(
    recipe: Recipe, kind: type[torch.optim.Optimizer], more: dict[str, object]
) -> None:
    ours, plain = (nn.Parameter(torch.tensor([1.0, -2.0, 3.0])) for _ in range(2))
    one = new_optimizer(Phase(recipe, parameters=[ours]), linear())
    pairs = [(ours, one), (plain, kind([plain], lr=0.1, weight_decay=0.1, foreach=False, **more))]
    for parameter, optimizer in pairs:
        for _ in range(5):
            optimizer.zero_grad()
            (parameter**2).sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours, plain)


def test_a_batch_knows_where_it_comes_from(stream: Stream) -> None:
    seen: list[tuple[int, int, int]] = []

    class Watching(Linear):
        def loss(self, batch: Batch) -> Tensor:
            assert torch.equal(batch.raw_images, batch.task.train.images[batch.indices])
            assert torch.equal(batch.labels, batch.task.train.labels[batch.indices])
            assert set(batch.labels.tolist()) <= set(batch.task.classes)
            seen.append((batch.task.index, batch.epoch, batch.epochs))
            return super().loss(batch)

    trainer = Trainer(Watching(Settings(), 1, (8, 8), AUGMENT, None), replace(RECIPE, batch_size=100), 0)
    for task in stream[:2]:
        trainer.learn(task)
    assert seen == [(0, 0, 2), (0, 1, 2), (1, 0, 2), (1, 1, 2)]


def test_seeds_are_apart_for_every_purpose() -> None:
    draws = {torch.rand(1, generator=seeded(*key)).item() for key in [(0, "a"), (0, "b"), (1, "a"), (2**70, "a")]}
    assert len(draws) == 4
    assert torch.equal(torch.rand(3, generator=seeded(7, "a")), torch.rand(3, generator=seeded(7, "a")))


class Fixed(Linear):
    """Answers what the pictures' first pixels say: the logits of six classes."""

    def logits(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, :6]


def test_class_il_and_task_il_by_hand() -> None:
    answers = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
    for image, logits in zip(
        answers,
        [
            [9, 1, 0, 0, 0, 0],  # task 1's first class, right in both settings
            [5, 3, 0, 0, 9, 0],  # drawn away by task 2, but right within task 1
            [0, 9, 0, 0, 0, 0],  # wrong within task 1
            [0, 0, 0, 9, 0, 0],  # task 2's second class
        ],
        strict=True,
    ):
        image[0, 0, :6] = torch.tensor(logits)
    names = tuple("abcdef")
    sets = [
        ImageSet(answers[:3], torch.tensor([0, 0, 0]), names),
        ImageSet(answers[3:], torch.tensor([3]), names),
    ]
    result = evaluate(Fixed(Settings(), 1, (8, 8), AS_THEY_ARE, None), sets, [range(2), range(2, 6)])
    assert result.class_il == pytest.approx([100 / 3, 100])
    assert result.task_il == pytest.approx([200 / 3, 100])
    assert result.task_confusion == [[2, 1], [0, 1]]


class InParts(Fixed):
    """One part says what the whole says, another that everything is of the third class, or of a task's first."""

    def logits_by_part(self, images: Tensor) -> dict[str, Tensor]:
        third = torch.zeros(len(images), 6)
        third[:, 2] = 1
        return {"third": third, "whole": self.logits(images)}


def test_answers_by_part_are_tested_as_the_whole_is() -> None:
    pictures = torch.zeros(600, 1, 8, 8, dtype=torch.uint8)
    pictures[:, 0, 0, 1] = 1
    pictures[450:, 0, 0, 2] = 2
    names = tuple("abcdef")
    sets = [
        ImageSet(pictures[:400], torch.tensor([0, 1, 1, 1]).repeat(100), names),
        ImageSet(pictures[400:], torch.tensor([2, 3]).repeat(100), names),
    ]
    classes = [range(2), range(2, 6)]
    method = InParts(Settings(), 1, (8, 8), AS_THEY_ARE, None)
    whole = evaluate(method, sets, classes)
    found = evaluate_by_part(method, sets, classes)
    assert list(found) == ["third", "whole"]
    assert found["whole"] == whole
    assert whole.class_il == [75.0, 37.5]
    assert found["third"].class_il == [0.0, 50.0]
    assert found["third"].task_il == [25.0, 50.0]
    assert evaluate_by_part(Fixed(Settings(), 1, (8, 8), AS_THEY_ARE, None), sets, classes) == {}


def test_parts_are_tested_after_the_last_task_alone(stream: Stream) -> None:
    class OnePart(Linear):
        def logits_by_part(self, images: Tensor) -> dict[str, Tensor]:
            return {"whole": self.logits(images)}

    reports = Trainer(OnePart(Settings(), 1, (8, 8), AS_THEY_ARE, None), RECIPE, 0).run(stream)
    assert [list(report.by_part) for report in reports] == [[], [], ["whole"]]
    assert reports[-1].by_part["whole"] == reports[-1].test


def test_more_pictures_than_fit_at_once_are_all_tested() -> None:
    pictures = torch.zeros(1000, 1, 8, 8, dtype=torch.uint8)
    pictures[:, 0, 0, 1] = 1
    labels = torch.tensor([0, 1, 1, 1]).repeat(250)
    sets = [ImageSet(pictures, labels, tuple("abcdef"))]
    result = evaluate(Fixed(Settings(), 1, (8, 8), AS_THEY_ARE, None), sets, [range(6)])
    assert result.class_il == [75.0]


def test_two_pictures_a_task_are_enough_even_where_one_pixel_is_left(augment: Augment) -> None:
    images = torch.randint(0, 256, (4, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    pictures = ImageSet(images, torch.tensor([0, 0, 1, 1]), ("a", "b"))
    method = METHODS.find("sparc")
    deep = method(method.Settings(width=1 / 16, depth=4), 1, (8, 8), AUGMENT, seeded(0, "method"))
    Trainer(deep, RECIPE, 0).run(Stream(Splits(pictures, pictures), [1, 1]))
