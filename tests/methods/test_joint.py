import torch

from sparc.data.augment import Augment
from sparc.data.imageset import Splits
from sparc.data.stream import Stream
from sparc.methods import Recipe
from sparc.methods.bounds.joint import Joint
from sparc.methods.bounds.sgd import SGD
from sparc.methods.parts.single import SingleNetSettings
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT

RECIPE = Recipe(epochs=2, batch_size=16, lr=0.1)
SETTINGS = SingleNetSettings(width=1 / 8)


def test_it_equals_training_on_the_merged_set(splits: Splits, stream: Stream, augment: Augment) -> None:
    joint = Joint(SETTINGS, 1, (8, 8), AUGMENT, seeded(0, "method"))
    Trainer(joint, RECIPE, seed=0).learn(stream[-1])

    merged = Stream(splits, [6])
    plain = SGD(SETTINGS, 1, (8, 8), AUGMENT, seeded(0, "method"))
    plain.net = plain.new_net(plain.generator)
    Trainer(plain, RECIPE, seed=0).learn(merged[0])
    for name, value in plain.net.state_dict().items():
        assert torch.equal(joint.net.state_dict()[name], value), name


def test_every_task_begins_with_a_new_net_for_all_classes_so_far(stream: Stream, augment: Augment) -> None:
    joint = Joint(SETTINGS, 1, (8, 8), AUGMENT, seeded(0, "method"))
    Trainer(joint, RECIPE, seed=0).learn(stream[0])
    learned = joint.net.stem[0].weight.detach().clone()  # type: ignore[union-attr,index]
    joint.begin_task(stream[1])
    assert joint.net.classes == 5
    assert not torch.isclose(joint.net.stem[0].weight, learned).any()  # type: ignore[union-attr,index]
    assert all(parameter.requires_grad for parameter in joint.parameters())
