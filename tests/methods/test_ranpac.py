import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.errors import InputError
from sparc.methods.prototypes.ranpac import RanPAC, RanpacSettings
from sparc.nn.ridge import RunningRidge
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import recipe


@given(st.permutations(range(5)), st.lists(st.integers(1, 59), max_size=4))
def test_any_order_and_any_portions_equal_all_pictures_at_once(order: list[int], cuts: list[int]) -> None:
    generator = torch.Generator().manual_seed(0)
    features, labels = torch.randn(60, 8, generator=generator), torch.arange(60) % 5
    ridge = RunningRidge(8)
    arrival = torch.cat([torch.nonzero(labels == label).flatten() for label in order])
    for portion in arrival.tensor_split(sorted(cuts)):
        if len(portion):
            ridge.add(features[portion], labels[portion])
    penalty = 0.1 * features.square().sum(0).mean().item()
    at_once = Ridge(alpha=penalty, fit_intercept=False).fit(features, np.eye(5)[labels])
    np.testing.assert_allclose(ridge.weight(0.1).numpy(), at_once.coef_, atol=1e-5)


def learner(stream: Stream, **settings: float) -> RanPAC:
    made = RanpacSettings(width=1 / 8, random_features=32, **settings)  # type: ignore[arg-type]
    method = RanPAC(made, 1, (8, 8), AUGMENT, seeded(0, "method"))
    trainer = Trainer(method, recipe(RanPAC), 0)
    for task in stream:
        trainer.learn(task)
    return method


def test_after_three_tasks_it_answers_as_ridge_on_all_pictures_at_once(stream: Stream, augment: Augment) -> None:
    method = learner(stream, ridge=0.3)
    images = augment.normalize(torch.cat([task.train.images for task in stream]))
    labels = torch.cat([task.train.labels for task in stream])
    with torch.no_grad():
        seen = (method.eval().net.features(images) @ method.projection.T).relu().double().numpy()
        found = method.logits(images).numpy()
    penalty = 0.3 * np.square(seen).sum(0).mean()
    at_once = Ridge(alpha=penalty, fit_intercept=False).fit(seen, np.eye(6)[labels])
    np.testing.assert_allclose(found, at_once.predict(seen), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "flag"), [({"random_features": 0}, "--random-features 0"), ({"ridge": 0.0}, "--ridge 0")]
)
def test_bad_settings_are_refused_by_their_flag(settings: dict[str, float], flag: str) -> None:
    with pytest.raises(InputError, match=flag):
        RanpacSettings(**settings)  # type: ignore[arg-type]
