from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparc.data.imageset import ImageSet, Splits
from sparc.data.stream import Stream, equal_sizes
from sparc.errors import InputError


def numbered(labels: list[int], classes: int) -> ImageSet:
    """Pictures that carry their own number in two pixels, so that each can be recognized."""
    images = torch.zeros(len(labels), 1, 8, 8, dtype=torch.uint8)
    for number, image in enumerate(images):
        image[0, 0, 0], image[0, 0, 1] = number // 256, number % 256
    return ImageSet(images, torch.tensor(labels), tuple(f"name {label}" for label in range(classes)))


def number_of(image: torch.Tensor) -> int:
    return int(image[0, 0, 0]) * 256 + int(image[0, 0, 1])


@st.composite
def cuts(draw: st.DrawFn) -> tuple[list[int], list[int], int | None, float]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    classes = sum(sizes)
    extra = draw(st.lists(st.integers(0, classes - 1), max_size=60))
    labels = draw(st.permutations([*range(classes), *range(classes), *extra]))
    return sizes, list(labels), draw(st.none() | st.integers(0, 2**40)), draw(st.sampled_from([0.0, 0.1, 0.5, 0.9]))


@given(cuts())
def test_every_picture_is_in_exactly_one_task(cut: tuple[list[int], list[int], int | None, float]) -> None:
    sizes, labels, order_seed, validation = cut
    images = numbered(labels, sum(sizes))
    stream = Stream(Splits(images, images), sizes, order_seed, validation)
    learned, held_out, tested = [], [], []
    for task in stream:
        assert len(task.classes) == sizes[task.index]
        for part, numbers in ((task.train, learned), (task.validation, held_out), (stream.test(task.index), tested)):
            for image, label in zip(part.images, part.labels.tolist(), strict=True):
                number = number_of(image)
                numbers.append(number)
                assert label in task.classes
                # Whatever the order of the classes, a picture keeps its name.
                assert part.class_names[label] == f"name {labels[number]}"
    assert sorted(learned + held_out) == sorted(tested) == list(range(len(labels)))
    assert {labels[number] for number in learned} == set(labels), "no class is held out completely"
    assert stream.train_counts() == [len(task.train) for task in stream]
    assert all(before.classes.stop == after.classes.start for before, after in pairwise(stream))


@given(st.integers(1, 300), st.data())
def test_equal_sizes_differ_by_one_at_most(classes: int, data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, classes))
    sizes = equal_sizes(classes, tasks)
    assert len(sizes) == tasks
    assert sum(sizes) == classes
    assert max(sizes) - min(sizes) <= 1


def test_natural_order_is_the_data_sets_own(splits: Splits) -> None:
    assert Stream(splits, [3, 3]).class_names == splits.train.class_names


def test_order_depends_on_its_seed_alone(splits: Splits) -> None:
    orders = [Stream(splits, [3, 3], order_seed=seed).class_names for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[2]) == sorted(splits.train.class_names)


def test_validation_is_a_share_of_every_class(splits: Splits) -> None:
    for task in Stream(splits, [3, 3], validation=0.25):
        counts = torch.bincount(task.validation.labels, minlength=6)[task.classes.start : task.classes.stop]
        assert counts.tolist() == [6, 6, 6]  # of 24


def test_a_stream_is_a_sequence(stream: Stream) -> None:
    assert len(stream) == 3
    assert stream[-1].index == 2
    assert [task.index for task in stream[1:]] == [1, 2]
    with pytest.raises(IndexError):
        stream[3]


def test_more_tasks_than_classes_are_refused() -> None:
    with pytest.raises(InputError, match="--tasks 11 cannot be cut from 10 classes"):
        equal_sizes(10, 11)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [([2, 2], "adds up to 4, but there are 6"), ([6, 0], "without a class"), ([], "--sizes is empty")],
)
def test_sizes_that_do_not_fit_are_refused(splits: Splits, sizes: list[int], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Stream(splits, sizes)


@pytest.mark.parametrize("share", [-0.1, 1, float("nan")])
def test_a_validation_share_that_is_none_is_refused(splits: Splits, share: float) -> None:
    with pytest.raises(InputError, match="--validation"):
        Stream(splits, [3, 3], validation=share)


def test_a_class_without_pictures_is_refused(splits: Splits) -> None:
    some = splits.train.take(torch.nonzero(splits.train.labels != 4).flatten())
    with pytest.raises(InputError, match="class “class 4” has no training picture"):
        Stream(Splits(some, splits.test), [3, 3])
    with pytest.raises(InputError, match="class “class 4” has no test picture"):
        Stream(Splits(splits.train, some), [3, 3])


@pytest.mark.parametrize(
    ("images", "labels", "sentence"),
    [
        (torch.zeros(2, 1, 8, 8), torch.tensor([0, 1]), "uint8"),
        (torch.zeros(2, 8, 8, dtype=torch.uint8), torch.tensor([0, 1]), "N × channels"),
        (torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.tensor([0]), "one int64 an image"),
        (torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.tensor([0, 2]), "labels run from 0 to 2"),
        (torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.tensor([-1, 1]), "labels run from -1 to 1"),
    ],
)
def test_what_is_no_image_set_is_refused(images: torch.Tensor, labels: torch.Tensor, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ImageSet(images, labels, ("a", "b"))


def test_the_fingerprint_sees_every_pixel_and_label(splits: Splits) -> None:
    original = splits.test
    images = original.images.clone()
    images[-1, 0, -1, -1] ^= 1
    labels = original.labels.clone()
    labels[0] += 1
    others = [
        ImageSet(images, original.labels, original.class_names),
        ImageSet(original.images, labels, original.class_names),
        ImageSet(original.images, original.labels, (*original.class_names[:-1], "other")),
    ]
    assert len({original.fingerprint(), *(other.fingerprint() for other in others)}) == 4
    assert original.fingerprint() == original.take(torch.arange(len(original))).fingerprint()


def test_images_with_odd_strides_are_laid_out_anew() -> None:
    """A single channel may have any stride and still be called contiguous."""
    images = torch.arange(3 * 8 * 10, dtype=torch.uint8).view(3, 8, 10)[:, None]
    odd = images.as_strided(images.shape, (80, 7, 10, 1))
    turned = images.transpose(2, 3).contiguous().transpose(2, 3)
    assert odd.is_contiguous()
    labels = torch.tensor([0, 1, 1])
    plain, *others = (ImageSet(each, labels, ("a", "b")) for each in (images.clone(), odd, turned))
    for other in others:
        assert torch.equal(other.images, plain.images)
        assert other.images.stride() == plain.images.stride() == (80, 80, 10, 1)
        assert other.fingerprint() == plain.fingerprint()


@given(st.permutations(range(6)))
def test_relabelled_classes_keep_their_pictures(splits: Splits, order: list[int]) -> None:
    images = splits.train
    other = images.relabelled(order)
    assert other.class_names == tuple(images.class_names[label] for label in order)
    assert torch.equal(other.images, images.images)
    assert [other.class_names[label] for label in other.labels] == [
        images.class_names[label] for label in images.labels
    ]
