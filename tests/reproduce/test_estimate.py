from dataclasses import replace

import pytest

from sparc.experiment import RunConfig
from sparc.reproduce.catalog import EXHIBITS
from sparc.reproduce.estimate import estimate, images_per_second
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


def test_passes_are_those_of_the_method() -> None:
    hours = {name: estimate(RunConfig.default("seq-cifar100-5", name), 100) for name in ("sgd", "er", "der++", "pnn")}
    assert hours["sgd"] < hours["er"] < hours["der++"] < 3 * hours["sgd"] < hours["pnn"]


def test_the_work_of_a_net_is_that_of_its_convolutions() -> None:
    """Multiply-adds, and as much as 300 of them for each number that comes out, but for depth-wise filters."""

    def separable(unit: int) -> int:
        maps = ((3, unit, 32), *[(unit, unit, 32)] * 4)
        for layer in (1, 2, 3):
            filters, side = unit << layer, 32 >> layer
            maps += ((filters // 2, filters, side), *[(filters, filters, side)] * 3)
        return sum(side * side * (9 * inputs + out * (inputs + 300)) for inputs, out, side in maps)

    wide = replace(USUAL, settings=replace(USUAL.settings, width=1.0))
    ratio = separable(64) / separable(32)
    assert images_per_second(USUAL) / images_per_second(wide) == pytest.approx(ratio)

    def resnet(unit: int) -> int:
        maps = ((3, unit, 3, 32), *[(unit, unit, 3, 32)] * 4)
        for layer in (1, 2, 3):
            out, side = unit << layer, 32 >> layer
            maps += ((out // 2, out, 3, side), *[(out, out, 3, side)] * 3, (out // 2, out, 1, side))
        return sum(side * side * out * (kernel**2 * inputs + 300) for inputs, out, kernel, side in maps)

    rival = RunConfig.default("seq-cifar100-5", "sgd")
    narrow = replace(rival, settings=replace(rival.settings, width=0.25))
    assert images_per_second(narrow) / images_per_second(rival) == pytest.approx(resnet(64) / resnet(16))


def test_every_run_of_the_paper_takes_some_time() -> None:
    for exhibit in EXHIBITS.values():
        for config in exhibit.needed(SCALES["quick"]):
            assert 0 < estimate(config, images_per_second(config)) < 1e4
