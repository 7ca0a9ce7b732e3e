from dataclasses import replace

import pytest

from sparc.experiment import RunConfig
from sparc.reproduce.catalog import EXHIBITS
from sparc.reproduce.estimate import estimate, images_per_second
from sparc.reproduce.exhibit import needed
from sparc.reproduce.plan import SCALES

USUAL = RunConfig.default("seq-cifar100-5", "sparc")


def test_hours_are_pictures_times_epochs_over_the_rate() -> None:
    assert estimate(USUAL, 50_000 * 50 / 3600) == pytest.approx(1.0)
    assert estimate(replace(USUAL, recipe=replace(USUAL.recipe, epochs=25)), 50_000 * 50 / 3600) == pytest.approx(0.5)
    assert estimate(replace(USUAL, benchmark="seq-tinyimagenet"), 50_000 * 50 / 3600) == pytest.approx(2.0)


def test_joint_learns_every_task_again() -> None:
    assert estimate(replace(USUAL, method="joint"), 100) == pytest.approx(3 * estimate(USUAL, 100))


def test_wider_nets_and_larger_pictures_are_slower() -> None:
    wide = replace(USUAL, settings=replace(USUAL.settings, width=1.0))
    large = replace(USUAL, benchmark="seq-tinyimagenet")
    assert images_per_second(USUAL) > 1.5 * images_per_second(wide)
    assert images_per_second(USUAL) == pytest.approx(4 * images_per_second(large))


def test_every_run_of_the_paper_takes_some_time() -> None:
    for exhibit in EXHIBITS.values():
        for config in needed(exhibit, SCALES["quick"]):
            assert 0 < estimate(config, images_per_second(config)) < 1e4
