import pytest
import torch

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.methods import Recipe
from sparc.methods.sparc.isolation import Isolation
from sparc.methods.sparc.settings import RenormalizationSettings
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT


@pytest.mark.parametrize(("width", "millions"), [(0.5, 1.65), (1, 6.35), (2, 24.9)])
def test_the_papers_parameters(width: float, millions: float) -> None:
    with torch.device("meta"):
        method = Isolation(RenormalizationSettings(width=width), 3, (32, 32), AUGMENT, seeded(0, "method"))
        for _ in range(5):
            method.net.add_task(20)
    owners = method.parameters_by_owner()
    assert sum(owners.values()) / 1e6 == pytest.approx(millions, abs=0.05 if millions > 10 else 0.005)
    assert owners["semantic memory"] == 0


def test_old_answers_are_bit_equal_whatever_comes(stream: Stream, augment: Augment) -> None:
    method = Isolation(RenormalizationSettings(width=1 / 8), 1, (8, 8), AUGMENT, seeded(0, "method"))
    trainer = Trainer(method, Recipe(epochs=1, batch_size=24, lr=5e-3, optimizer="adam"), 0)
    images = augment.normalize(stream.test(0).images)
    said: list[bytes] = []
    for task in stream:
        trainer.learn(task)
        method.eval()
        with torch.inference_mode():
            now = [method.net.task_logits(images, number).numpy().tobytes() for number in range(task.index + 1)]
        assert now[:-1] == said
        said = now
