from itertools import pairwise

import torch

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.methods import Recipe
from sparc.methods.masks.cpg import START, CpgSettings
from sparc.methods.masks.pae import PAE
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import begin

RECIPE = Recipe(epochs=1, batch_size=24, lr=0.03, momentum=0.9, weight_decay=0.05)


def learner(**settings: object) -> PAE:
    return PAE(CpgSettings(width=1 / 8, **settings), 1, (8, 8), AUGMENT, seeded(0, "method"))  # type: ignore[arg-type]


def test_a_task_uses_all_weights_of_those_before_it_and_changes_none(stream: Stream, augment: Augment) -> None:
    method = learner(margin=100)
    trainer = Trainer(method, RECIPE, 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    for task in stream:
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now
    sets = [method.masks.of(task, method.weights()) for task in range(3)]
    for before, after in pairwise(sets):
        for old, new in zip(before, after, strict=True):
            assert new[old].all(), "all are used"
            assert new.sum() > old.sum()


def test_it_grows_to_twice_its_width(stream: Stream) -> None:
    method = learner(goal=80)
    begin(method, stream[0])
    assert method.filters == [8, 12, 16]
    for grown in range(3):
        assert int(next(iter(method.mine)).sum()) == 9 * method.filters[grown]
        method.accuracies = torch.full((grown + 1,), 70.0)
        names = [phase.name for phase in method.phases(stream[0], RECIPE)]
        if grown < 2:
            assert names == ["train", *["grow"] * (grown + 1)]
            method.grow()
    assert names == ["train", "grow", "grow", "prune 10%"]


def test_no_scores_are_trained(stream: Stream) -> None:
    method = learner()
    Trainer(method, RECIPE, 0).learn(stream[0])
    begin(method, stream[1])
    assert not any(len(moment) for moment in method.first)
    for score, old in zip(method.scores, method.masks.any(method.weights()), strict=True):
        assert torch.equal(score, torch.where(old, START, -torch.inf))
