"""The authors' defaults for Seq-CIFAR100 in 5 tasks: whoever changes one changes what has been compared."""

from dataclasses import asdict

import pytest

from sparc.methods import METHODS

FROM_SCRATCH = {"batch_size": 128, "lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}
DEFAULTS = {
    "joint": {"lr": 0.1},
    "sgd": {"lr": 0.03},
    "er": {"lr": 0.1, "buffer_size": 200, "replay_batch": 32},
    "der++": {"lr": 0.03, "buffer_size": 200, "replay_batch": 32, "alpha": None, "beta": 0.5},
    "er-ace": {"lr": 0.03, "buffer_size": 200, "replay_batch": 32},
    "cls-er": {
        "lr": 0.1,
        "buffer_size": 200,
        "replay_batch": 32,
        "reg_weight": 0.15,
        "plastic_rate": 0.3,
        "stable_rate": 0.1,
        "alpha": 0.999,
    },
    "ocdnet": {
        "lr": 0.1,
        "replay_weight": 0.5,
        "consistency_weight": 0.1,
        "distillation_weight": 0.1,
        "contrast_weight": 0.3,
        "rotation_weight": 0.3,
        "temperature": 0.07,
        "rate": 0.1,
        "alpha": 0.999,
    },
    "tamil": {
        "lr": 0.03,
        "code": 64,
        "beta": 0.5,
        "pairwise_weight": 0.1,
        "reg_weight": 0.1,
        "rate": 0.05,
        "alpha": 0.999,
    },
    "trire": {
        "lr": 2e-3,
        "optimizer": "adam",
        "buffer_size": 200,
        "replay_batch": 32,
        "retain_share": 0.6,
        "revise_share": 0.2,
        "revise_lr": 0.05,
        "active_share": 0.9,
        "filter_share": 0.3,
        "weight_share": 0.2,
        "reg_weight": 0.05,
        "rate": 0.1,
        "alpha": 0.999,
    },
    "co2l": {
        "epochs": 500,
        "batch_size": 512,
        "lr": 0.5,
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "schedule": "cosine",
        "buffer_size": 200,
        "temperature": 0.5,
        "current_temperature": 0.2,
        "past_temperature": 0.01,
    },
    "gcr": {"lr": 0.03, "buffer_size": 200, "alpha": None, "beta": 0.5, "gamma": 0.1},
    "lider-der++": {
        "batch_size": 64,
        "lr": 0.03,
        "milestones": (0.7, 0.9),
        "alpha": 0.3,
        "beta": 0.3,
        "lipschitz_weight": 0.3,
        "budget_weight": 0.5,
    },
    "lider-er-ace": {
        "batch_size": 64,
        "lr": 0.1,
        "milestones": (0.7, 0.9),
        "lipschitz_weight": 0.1,
        "budget_weight": 0.3,
    },
    "lwf": {"lr": 0.01, "temperature": 2.0, "alpha": 1.0},
    "oewc": {"lr": 0.03, "lam": 0.3, "gamma": 1.0},
    "si": {"lr": 0.03, "clip_value": 1.0, "lam": 0.5, "xi": 1.0},
    "pnn": {"lr": 0.03},
    "packnet": {"lr": 0.01, "momentum": 0.9, "prune": None, "retrain": 0.5},
    "fecam": {**FROM_SCRATCH, "epochs": 200, "schedule": "cosine", "tukey": 0.5, "shrink": 1.0, "shrink_others": 1.0},
    "fetril": {**FROM_SCRATCH, "weight_decay": 1e-4, "epochs": 90, "milestones": (1 / 3, 2 / 3)},
    "ranpac": {**FROM_SCRATCH, "epochs": 160, "milestones": (0.5, 0.75)},
    "sdc": {**FROM_SCRATCH, "epochs": 200, "milestones": (0.3, 0.6, 0.8), "sigma": 0.3, "lam": 10, "temperature": 2},
    "pass": {
        "epochs": 101,
        "batch_size": 64,
        "lr": 1e-3,
        "optimizer": "adam",
        "weight_decay": 2e-4,
        "temperature": 0.1,
        "prototype_weight": 10,
        "distillation_weight": 10,
    },
    "ssre": {
        "epochs": 100,
        "batch_size": 128,
        "lr": 1e-3,
        "optimizer": "adam",
        "weight_decay": 5e-4,
        "temperature": 0.1,
        "prototype_weight": 10,
    },
    "seed": {
        "epochs": 200,
        "batch_size": 128,
        "lr": 0.05,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "milestones": (0.3, 0.6, 0.8),
        "clip_norm": 1,
        "experts": 5,
        "alpha": 0.99,
        "temperature": 3,
    },
    "adagauss": {
        "epochs": 200,
        "batch_size": 256,
        "lr": 0.1,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "milestones": (0.3, 0.6, 0.9),
        "clip_norm": 1,
        "features": 64,
    },
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
