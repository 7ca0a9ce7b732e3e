import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, relu

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods import Recipe
from sparc.methods.growing.pnn import PNN
from sparc.methods.settings import NetSettings
from sparc.nn.progressive import ProgressiveNet
from sparc.nn.resnet import ResNet
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT

RECIPE = Recipe(epochs=2, batch_size=24, lr=0.03)


def learner() -> PNN:
    return PNN(NetSettings(width=1 / 8), 1, (8, 8), AUGMENT, seeded(0, "method"))


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(("tasks", "ours", "papers"), [(5, 104_649_972, 216.7), (10, 231_816_702, 735.28)])
def test_the_papers_count_is_ours_and_copies_of_older_columns(tasks: int, ours: int, papers: float) -> None:
    with torch.device("meta"):
        net = ProgressiveNet()
        for _ in range(tasks):
            net.add_task(100 // tasks)
        stem_norm = count(ResNet().stem[1])
        column = count(ResNet())
    assert count(net) == ours
    copies = sum(range(tasks)) * (column - stem_norm)
    wide_heads = (2 * tasks - 1) * (100 - 100 // tasks) * 513
    assert (ours + copies + wide_heads) / 1e6 == pytest.approx(papers, abs=0.01)


def test_columns_are_frozen_and_their_answers_bit_equal_whatever_comes(stream: Stream, augment: Augment) -> None:
    method = learner()
    trainer = Trainer(method, RECIPE, 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    for task in stream:
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.net.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now
    *old, newest = method.net.all_columns()
    assert all(column.frozen and not any(p.requires_grad for p in column.parameters()) for column in old)
    assert all(parameter.requires_grad for parameter in newest.parameters())


def test_a_column_stays_as_it_is_even_when_it_is_trained_beside(stream: Stream, augment: Augment) -> None:
    method = learner()
    method.begin_task(stream[0])
    method.begin_task(stream[1])
    method.train()
    first, second = method.net.all_columns()
    before = {name: value.clone() for name, value in first.state_dict().items()}
    method.net(augment.normalize(stream[0].train.images)).sum().backward()
    assert all(torch.equal(value, before[name]) for name, value in first.state_dict().items()), "statistics too"
    assert all(parameter.grad is None for parameter in first.parameters())
    assert all(parameter.grad is not None for parameter in second.parameters())


def test_lateral_connections_a_second_way(stream: Stream, augment: Augment) -> None:
    """The third task's logits, layer by layer, from all columns' own answers."""
    method = learner()
    for task in stream:
        method.begin_task(task)
    method.eval()
    images = augment.normalize(stream.test(0).images)
    maps: list[list[Tensor]] = []
    for column in method.net.all_columns():
        shown = relu(column.stem(images))
        first = column.layers[0](shown)
        second = column.layers[1](first)
        pooled = second.mean((2, 3))
        if maps:
            adapter, last = column.adapters
            old = torch.cat([each[0] for each in maps], 1) * adapter.scale
            weight = adapter.project.weight[:, :, None, None]
            second = second + column.laterals[0](relu(conv2d(old, weight, adapter.project.bias)))
            pooled = second.mean((2, 3))
            old = torch.cat([each[1].mean((2, 3)) for each in maps], 1) * last.scale.flatten()
            beside = column.laterals[1](relu(last.project(old)))
        logits = column.head(pooled) + (beside if maps else 0)
        maps.append([first, second])
    torch.testing.assert_close(method.net.task_logits(images, 2), logits)
    assert method.logits(images).shape == (len(images), 6)
    torch.testing.assert_close(method.logits(images)[:, 5:], logits)


def test_pictures_of_odd_size_fit() -> None:
    net = ProgressiveNet(channels=1, image_size=(11, 9), width=1 / 16, depth=3)
    for _ in range(2):
        net.add_task(2)
    assert net(torch.rand(2, 1, 11, 9)).shape == (2, 4)


def test_a_task_has_classes() -> None:
    with pytest.raises(InputError, match="at least one class"):
        ProgressiveNet(width=1 / 16).add_task(0)
