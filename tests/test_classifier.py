"""`ContinualClassifier` and what it stands on."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sparc.classifier import ContinualClassifier
from sparc.data.imageset import Splits
from sparc.errors import InputError
from sparc.predictor import scores

QUICK = {"width": 1 / 8, "epochs": 12, "flip": False, "patches": 256}


def some(splits: Splits, *labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of these classes as N × height × width, and their labels."""
    chosen = torch.isin(splits.train.labels, torch.tensor(labels))
    return splits.train.images[chosen, 0].numpy(), splits.train.labels[chosen].numpy()


@pytest.fixture(scope="module")
def taught_once(splits: Splits) -> ContinualClassifier:
    classifier = ContinualClassifier(**QUICK)
    for labels in ((0, 1, 2), (3, 4)):
        classifier.learn(*some(splits, *labels))
    return classifier


@pytest.fixture
def taught(taught_once: ContinualClassifier) -> ContinualClassifier:
    return deepcopy(taught_once)


def test_it_learns_task_after_task(taught: ContinualClassifier, splits: Splits) -> None:
    assert taught.classes_.tolist() == [0, 1, 2, 3, 4]
    images, labels = some(splits, 0, 1, 2, 3, 4)
    assert taught.score(images, labels) > 0.5
    assert [task.name for task in taught.model_.info.tasks] == ["task 1", "task 2"]
    assert [task.pictures for task in taught.model_.info.tasks] == [(24, 24, 24), (24, 24)]
    assert [task.share_in_semantic for task in taught.model_.info.tasks] == [1, 0]


def test_twenty_pictures_of_each_digit_two_digits_at_a_time() -> None:
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))  # those that follow each other are of one hand
    images, labels = (digits.images[order] * 15.9).astype("uint8"), digits.target[order]
    first = np.concatenate([np.flatnonzero(labels == digit)[:20] for digit in range(10)])
    classifier = ContinualClassifier(flip=False)
    for task in range(5):
        chosen = first[labels[first] // 2 == task]
        classifier.learn(images[chosen], labels[chosen])
    others = np.setdiff1d(np.arange(len(labels)), first)
    assert classifier.score(images[others], labels[others]) > 0.85


def test_probabilities_are_of_all_classes(taught: ContinualClassifier, splits: Splits) -> None:
    images, _ = some(splits, 0, 3)
    probabilities = taught.predict_proba(images)
    assert probabilities.shape == (len(images), 5)
    assert np.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert (taught.predict(images) == taught.classes_[probabilities.argmax(1)]).all()


def test_prediction_changes_nothing(taught: ContinualClassifier, splits: Splits, tmp_path: Path) -> None:
    taught.save(tmp_path / "before.sparc")
    taught.predict(some(splits, 0)[0])
    taught.save(tmp_path / "after.sparc")
    assert (tmp_path / "before.sparc").read_bytes() == (tmp_path / "after.sparc").read_bytes()


def test_what_is_saved_goes_on_where_it_was(taught: ContinualClassifier, splits: Splits, tmp_path: Path) -> None:
    taught.save(tmp_path / "model.sparc")
    loaded = ContinualClassifier.load(tmp_path / "model.sparc")
    images, _ = some(splits, 0, 1, 2, 3, 4)
    assert np.array_equal(loaded.predict_proba(images), taught.predict_proba(images))
    loaded.set_params(epochs=12, flip=False)
    for classifier in (taught, loaded):
        classifier.learn(*some(splits, 5))
    assert np.array_equal(loaded.predict_proba(images), taught.predict_proba(images)), "and learns the same from there"


def test_a_class_learned_again_is_known_better_and_has_one_output(taught: ContinualClassifier, splits: Splits) -> None:
    taught.learn(*some(splits, 0, 5))
    assert taught.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    images, _ = some(splits, 0)
    assert taught.module_(torch.from_numpy(images)[:, None].float()).shape[1] == 6
    *_, patches = taught.model_.net.all_voices()
    assert patches.gaussians.counts.tolist() == [48, 24, 24, 24, 24, 24]
    assert [list(layer.say.classes) for layer in taught.model_.net.readout().heads] == [[0, 1, 2], [3, 4], [0, 5]]
    assert taught.score(*some(splits, 0, 5)) > 0.8


def test_one_class_alone_is_told_by_statistics(taught: ContinualClassifier, splits: Splits) -> None:
    taught.learn(*some(splits, 5))
    task = taught.model_.info.tasks[-1]
    assert task.classes == ("5",)
    assert taught.model_.net.task_sizes == [3, 2]
    assert task.seen is None
    assert task.accuracy_in_task is None, "nothing to be told from"
    assert taught.score(*some(splits, 5)) > 0.8


def test_one_class_alone_is_told_from_its_own_pictures_turned_round_where_there_is_nothing_else(splits: Splits) -> None:
    taught = ContinualClassifier(**{**QUICK, "patches": 0}, statistics=0)
    for labels in ((0, 1), (5,)):
        taught.learn(*some(splits, *labels))
    assert taught.model_.net.task_sizes == [2, 1]


def test_text_labels_come_back_as_text(splits: Splits) -> None:
    images, labels = some(splits, 0, 1)
    names = np.array(["кот", "dog"])[labels]
    classifier = ContinualClassifier(**QUICK).learn(images, names)
    assert set(classifier.predict(images)) <= {"кот", "dog"}
    with pytest.raises(InputError, match="labels are either numbers or text"):
        classifier.learn(*some(splits, 2, 3))


def test_forgetting_takes_a_class_out(taught: ContinualClassifier, splits: Splits) -> None:
    taught.forget(1)
    assert taught.classes_.tolist() == [0, 2, 3, 4]
    assert 1 not in taught.predict(some(splits, 1)[0])
    taught.forget(3, 4)
    assert len(taught.model_.net.working) == 1, "a working memory without classes goes"
    taught.forget(0, 2)
    with pytest.raises(InputError, match="every class has been forgotten"):
        taught.predict(some(splits, 1)[0])
    assert taught.learn(*some(splits, 1, 2)).classes_.tolist() == [1, 2]
    with pytest.raises(InputError, match="unknown class “9”"):
        taught.forget(9)


def test_a_class_goes_by_another_name(taught: ContinualClassifier, splits: Splits) -> None:
    images, _ = some(splits, 0, 1)
    before = taught.predict_proba(images)
    assert taught.rename(1, -70).classes_.tolist() == [0, -70, 2, 3, 4]
    assert np.array_equal(taught.predict_proba(images), before)
    for new, sentence in (("one", "“one” is none"), ("٣", "is none"), ("04", "has a class “4” already")):
        with pytest.raises(InputError, match=sentence):
            taught.rename(0, new)
    assert taught.rename(-70, 1).classes_.tolist() == [0, 1, 2, 3, 4]


def test_heads_that_are_kept_answer_to_the_bit_as_before(splits: Splits) -> None:
    classifier = ContinualClassifier(**{**QUICK, "patches": 0}, statistics=0)
    for labels in ((0, 1, 2), (3, 4)):
        classifier.learn(*some(splits, *labels))
    pictures = torch.from_numpy(some(splits, 0, 3)[0])[:, None]
    before = scores(classifier.model_, pictures)
    classifier.forget(1)
    assert np.array_equal(scores(classifier.model_, pictures), before[:, [0, 2, 3, 4]])
    assert [task.pictures for task in classifier.model_.info.tasks] == [(22, 22), (22, 22)]


def test_a_forgotten_class_is_gone_from_every_working_memory(taught: ContinualClassifier, splits: Splits) -> None:
    taught.learn(*some(splits, 5))
    before = [voice.gaussians for voice in taught.model_.net.all_voices()]
    assert [voice.counts.tolist() for voice in before] == [[24] * 6, [24] * 3, [24] * 6]
    taught.forget(1, 3)
    after = [voice.gaussians for voice in taught.model_.net.all_voices()]
    for old, new, kept in zip(before, after, ([0, 2, 4, 5], [1, 2], [0, 2, 4, 5]), strict=True):
        assert torch.equal(new.means, old.means[kept])
        assert torch.equal(new.counts, old.counts[kept])
        torch.testing.assert_close(new.covariances(), old.covariances())
    assert taught.score(*some(splits, 0, 2, 4, 5)) > 0.8
    taught.forget(0, 2)
    (second, patches) = taught.model_.net.all_voices()
    assert torch.equal(second.gaussians.means, after[1].means), "a memory goes with what it knew of later classes"
    assert int(second.seed) == 1
    assert torch.equal(patches.gaussians.means, after[2].means[2:])


def test_nothing_at_all_remains_when_all_is_forgotten(taught: ContinualClassifier) -> None:
    before = [bank.detach().clone() for bank in taught.model_.net.semantic.filters]
    taught.forget(0, 1, 2, 3, 4)
    after = taught.model_.net.semantic.filters
    assert not any(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize(("shared", "share"), [(0.25, 0.01), (0.5, 0.01), (0.75, 0.01 / 3)])
def test_the_share_in_the_semantic_memory_is_what_was_mixed_in(splits: Splits, shared: float, share: float) -> None:
    classifier = ContinualClassifier(**{**QUICK, "epochs": 1}, shared=shared, alpha=0.99)
    for labels in ((0, 1), (2, 3)):
        classifier.learn(*some(splits, *labels))
    first, second = classifier.model_.info.tasks
    assert (first.taught_semantic, second.taught_semantic) == (True, False)
    assert second.share_in_semantic == pytest.approx(share)
    assert first.share_in_semantic == pytest.approx(1 - share)


def test_no_pictures_have_no_classes(taught: ContinualClassifier) -> None:
    assert taught.predict(np.zeros((0, 8, 8), np.uint8)).shape == (0,)


def test_whether_to_mirror_is_remembered(taught: ContinualClassifier, tmp_path: Path) -> None:
    taught.save(tmp_path / "model.sparc")
    assert ContinualClassifier.load(tmp_path / "model.sparc").flip is False


def test_a_fit_that_is_refused_leaves_what_was_known(taught: ContinualClassifier) -> None:
    with pytest.raises(InputError):
        taught.fit(np.zeros((4, 8, 8)), [0, 0, 1, 1])
    assert len(taught.classes_) == 5


def test_a_folder_on_a_model_of_numbers_is_refused(
    taught: ContinualClassifier, picture_folder: Callable[..., Path]
) -> None:
    with pytest.raises(InputError, match="classes are numbers, and these are not"):
        taught.learn(picture_folder())


def test_learning_that_fails_leaves_what_was_known(taught: ContinualClassifier, splits: Splits) -> None:
    before = taught.predict_proba(some(splits, 0)[0])
    with pytest.raises(InputError):
        taught.learn(np.zeros((4, 9, 9), np.uint8), [0, 0, 1, 1])
    with pytest.raises(InputError, match="has a task “task 1” already"):
        taught.learn(*some(splits, 5), name="task 1")
    assert np.array_equal(taught.predict_proba(some(splits, 0)[0]), before)


def test_it_is_a_scikit_learn_estimator(splits: Splits) -> None:
    classifier = ContinualClassifier(**QUICK)
    copied = clone(classifier)
    assert copied.get_params() == classifier.get_params()
    assert copied.set_params(width=0.25).width == 0.25
    with pytest.raises(NotFittedError):
        copied.predict(np.zeros((1, 8, 8), np.uint8))
    images, labels = some(splits, 0, 1)
    pipeline = make_pipeline(FunctionTransformer(lambda flat: flat.reshape(-1, 8, 8)), classifier)
    pipeline.fit(images.reshape(len(images), -1), labels)
    assert pipeline.score(images.reshape(len(images), -1), labels) > 0.8
    classifier.partial_fit(*some(splits, 2, 3))
    assert classifier.classes_.tolist() == [0, 1, 2, 3]
    assert classifier.fit(images, labels).classes_.tolist() == [0, 1], "fit begins anew"


def test_arrays_pictures_and_paths_are_all_the_same(picture_folder: Callable[..., Path]) -> None:
    folder = picture_folder(classes=2, per_class=5, side=32)
    paths = sorted(folder.rglob("*.png"))
    classifier = ContinualClassifier(width=1 / 8, epochs=2).learn(folder)
    assert classifier.classes_.tolist() == ["class-0", "class-1"]
    opened = [Image.open(path) for path in paths]
    cropped = [np.asarray(picture)[4:36] for picture in opened]  # the centre of 32 × 40
    kinds = [
        folder,
        paths,
        [str(path) for path in paths],
        opened,
        np.stack(cropped),
        torch.from_numpy(np.stack(cropped)).permute(0, 3, 1, 2),
    ]
    results = [classifier.predict_proba(kind) for kind in kinds]
    assert all(np.allclose(result, results[0]) for result in results)
    assert classifier.predict(paths[0]).shape == (1,)


def test_same_seed_same_model(splits: Splits) -> None:
    images, labels = some(splits, 0, 1)
    first, again, other = (ContinualClassifier(**QUICK, seed=seed).fit(images, labels) for seed in (1, 1, 2))
    assert np.array_equal(first.predict_proba(images), again.predict_proba(images))
    pictures = torch.from_numpy(images)[:, None]
    assert not np.array_equal(scores(first.model_, pictures), scores(other.model_, pictures))


def test_early_stopping_ends_when_nothing_gets_better(splits: Splits) -> None:
    classifier = ContinualClassifier(width=1 / 8, epochs=100, flip=False, validation=0.3).learn(*some(splits, 0, 1))
    assert classifier.model_.info.tasks[0].epochs < 100


@pytest.mark.parametrize(
    ("pictures", "labels", "sentence"),
    [
        (np.zeros((4, 8, 8)), [0, 0, 1, 1], "uint8"),
        (np.zeros((4, 64), np.uint8), [0, 0, 1, 1], "3 or 4 dimensions"),
        (torch.zeros(4, 8, 8, dtype=torch.bfloat16), [0, 0, 1, 1], "not bfloat16"),
        (torch.zeros(4, 8, 8, requires_grad=True), [0, 0, 1, 1], "not float32"),
        (np.zeros((4, 8, 8), np.uint8), [0, 1], "there are 4 pictures, but labels of shape"),
        (np.zeros((0, 8, 8), np.uint8), [], "no pictures"),
        (np.zeros((4, 8, 8), np.uint8), [0.0, 1.0, float("nan"), 1.0], "whole numbers or text"),
        (np.zeros((4, 8, 8), np.uint8), [None, "a", "b", "a"], "whole numbers or text"),
        (np.zeros((4, 8, 8), np.uint8), ["a", "a", "\n", "b"], "is no name"),
        (np.zeros((4, 8, 8), np.uint8), None, "need a label each"),
        (np.zeros((4, 4, 4), np.uint8), [0, 0, 1, 1], "too small|8 to 1024"),
    ],
)
def test_what_cannot_be_learned_is_refused(pictures: np.ndarray, labels: list[int] | None, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ContinualClassifier(**QUICK).learn(pictures, labels)


@pytest.mark.parametrize(
    ("parameter", "sentence"),
    [
        ({"effort": "much"}, "effort"),
        ({"effort": "quick", "epochs": 3}, "each say how long"),
        ({"epochs": 0}, "epochs 0"),
        ({"epochs": float("nan")}, "epochs nan"),
        ({"validation": 0}, "validation 0"),
        ({"width": 0}, "width 0"),
        ({"validation": 1.5}, "1.5"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameter: dict[str, object], sentence: str, splits: Splits) -> None:
    with pytest.raises(InputError, match=sentence):
        ContinualClassifier(**{**QUICK, **parameter}).learn(*some(splits, 0, 1))
