"""The authors' defaults for Seq-CIFAR100 in 5 tasks: whoever changes one changes what has been compared."""

from dataclasses import asdict

import pytest

from sparc.methods import METHODS

DEFAULTS = {
    "joint": {"lr": 0.1},
    "sgd": {"lr": 0.03},
    "er": {"lr": 0.1, "buffer_size": 200, "replay_batch": 32},
    "der++": {"lr": 0.03, "buffer_size": 200, "replay_batch": 32, "alpha": None, "beta": 0.5},
    "er-ace": {"lr": 0.03, "buffer_size": 200, "replay_batch": 32},
    "lwf": {"lr": 0.01, "temperature": 2.0, "alpha": 1.0},
    "oewc": {"lr": 0.03, "lam": 0.3, "gamma": 1.0},
    "si": {"lr": 0.03, "clip_value": 1.0, "lam": 0.5, "xi": 1.0},
    "pnn": {"lr": 0.03},
    "packnet": {"lr": 0.01, "momentum": 0.9, "prune": None, "retrain": 0.5},
    "sparc": {"lr": 0.005, "optimizer": "adam", "width": 0.5, "shared": 0.5, "alpha": 0.99, "kappa": 5.0},
    "chorus": {
        "epochs": 20,
        "lr": 0.02,
        "optimizer": "muon",
        "weight_decay": 0.05,
        "schedule": "linear",
        "width": 0.5,
        "inherit": "newest",
        "statistics": 256,
        "patches": 512,
    },
    "isolation": {"lr": 0.005, "optimizer": "adam", "width": 0.5, "kappa": 5.0},
    "weight-alignment": {"lr": 0.005, "optimizer": "adam", "width": 0.5, "shared": 0.5, "alpha": 0.99},
}
USUAL = {"epochs": 50, "batch_size": 32, "optimizer": "sgd", "momentum": 0, "weight_decay": 0, "schedule": "constant"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_the_authors(name: str) -> None:
    method = METHODS.find(name)
    expected = {**USUAL, **DEFAULTS[name]}
    given = {**asdict(method.recipe), **asdict(method.Settings())}
    assert {key: given[key] for key in expected} == expected
