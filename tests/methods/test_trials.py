"""A method of a kind that is still to come can be written without a hack, learns, and goes on from a checkpoint."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.experiment import Stopped
from sparc.experiment.run import state_digest
from sparc.nn.pretrained import Pretrained
from sparc.train import Checkpointer, Checkpoints, Snapshot, Trainer, evaluate
from tests.methods.contract import new
from tests.methods.trials import L2P, SmallViT


def test_it_learns(stream: Stream) -> None:
    method = new(L2P)
    trainer = Trainer(method, replace(L2P.recipe, epochs=12, batch_size=16), seed=0)
    for task in stream[:2]:
        trainer.learn(task)
    score = evaluate(method, [stream.test(index) for index in range(2)], [stream.classes(0), stream.classes(1)])
    assert score.task_il[1] > 60, "among three classes, of the second task"


class Cut(Checkpointer):
    """Keeps a checkpoint at every chance, and cuts the run off at one of them."""

    def __init__(self, checkpoints: Checkpoints, at: int) -> None:
        self.checkpoints, self.left = checkpoints, at

    def due(self) -> bool:
        return True

    def keep(self, snapshot: Callable[[], Snapshot]) -> None:
        self.left -= 1
        if self.left == 0:
            self.checkpoints.write(snapshot())
            raise Stopped


@pytest.mark.parametrize("at", [2, 7, 10])
def test_it_goes_on_to_the_same_bits(at: int, stream: Stream, tmp_path: Path) -> None:
    recipe = replace(L2P.recipe, epochs=2, batch_size=16)
    whole = new(L2P)
    Trainer(whole, recipe, seed=0).run(stream)
    checkpoints = Checkpoints(tmp_path, "this run", {})
    with pytest.raises(Stopped):
        Trainer(new(L2P), recipe, 0, checkpointer=Cut(checkpoints, at)).run(stream)
    again = Trainer(new(L2P, seed=1), recipe, seed=1)
    snapshot = checkpoints.newest()
    assert snapshot is not None
    again.restore(snapshot)
    again.run(stream)
    assert state_digest(again.method) == state_digest(whole)


def test_pretrained_weights_are_named_and_not_held(stream: Stream) -> None:
    method = new(L2P)
    Trainer(method, replace(L2P.recipe, epochs=1), seed=0).learn(stream[0])
    names = [name for name in method.state_dict() if name.startswith("vit")]
    assert names == ["vit._extra_state"]
    assert not any(name.startswith("vit") for name, _ in method.named_parameters())
    assert method.parameters_by_owner()["vit"] == sum(value.numel() for value in SmallViT().parameters())
    other = new(L2P)
    other.vit = Pretrained(SmallViT(seed=1))
    with pytest.raises(InputError, match="the pre-trained weights are not those that this run began with"):
        other.load_state_dict(method.state_dict())
