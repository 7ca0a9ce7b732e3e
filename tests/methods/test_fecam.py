import numpy as np
import pytest
import torch
from scipy.spatial.distance import mahalanobis

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.prototypes.fecam import FeCAM, FecamSettings
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import recipe


def learner(stream: Stream, tasks: int) -> FeCAM:
    method = FeCAM(FecamSettings(width=1 / 8), 1, (8, 8), AUGMENT, seeded(0, "method"))
    trainer = Trainer(method, recipe(FeCAM), 0)
    for task in stream[:tasks]:
        trainer.learn(task)
    return method


def twice_shrunk(covariance: np.ndarray) -> np.ndarray:
    for _ in range(2):
        size = len(covariance)
        variance = np.trace(covariance) / size
        others = (covariance.sum() - np.trace(covariance)) / (size * (size - 1))
        covariance = covariance + np.where(np.eye(size, dtype=bool), variance, others)
    return covariance


def test_answers_are_scipy_s_distances(stream: Stream, augment: Augment) -> None:
    method = learner(stream, 2)
    images = augment.normalize(stream.test(1).images[:4])
    with torch.no_grad():
        found = method.eval().logits(images)
        points = method.net.features(images).double().numpy() ** 0.5
        kept = [
            method.net.features(augment.normalize(task.train.images)).double().numpy() ** 0.5 for task in stream[:2]
        ]
    values, labels = np.concatenate(kept), np.concatenate([task.train.labels for task in stream[:2]])
    for label in range(5):
        own = values[labels == label]
        covariance = twice_shrunk(np.cov(own.T)) + 1e-8 * np.eye(own.shape[1])
        deviation = np.sqrt(np.diag(covariance))
        precision = np.linalg.inv(covariance / np.outer(deviation, deviation))
        mean = own.mean(0) / np.linalg.norm(own.mean(0))
        for row, point in enumerate(points):
            expected = -(mahalanobis(point / np.linalg.norm(point), mean, precision) ** 2)
            assert found[row, label].item() == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_the_net_stays_as_the_first_task_has_left_it(stream: Stream, augment: Augment) -> None:
    first, all_of_them = learner(stream, 1).net.state_dict(), learner(stream, 3).net.state_dict()
    assert all(torch.equal(value, all_of_them[name]) for name, value in first.items())


def test_it_can_be_asked_before_and_after_another_task(stream: Stream, augment: Augment) -> None:
    """What was prepared for the answers of two tasks is not taken for those of three."""
    method = learner(stream, 1)
    assert method.eval().logits(augment.normalize(stream.test(0).images)).shape[1] == 2
    Trainer(method, recipe(FeCAM), 0).learn(stream[1])
    assert method.eval().logits(augment.normalize(stream.test(0).images)).shape[1] == 5


@pytest.mark.parametrize("name", ["tukey", "shrink"])
def test_bad_settings_are_refused_by_their_flag(name: str) -> None:
    with pytest.raises(InputError, match=f"--{name} 0"):
        FecamSettings(**{name: 0})  # type: ignore[arg-type]
