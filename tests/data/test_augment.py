"""Batched augmentation against Pillow, which the field uses a picture at a time."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from sparc.data.augment import Augment
from sparc.data.imageset import ImageSet


def random_images(count: int = 64, channels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, 8, 10), generator=generator, dtype=torch.uint8)


def all_views(image: torch.Tensor, padding: int, flip: bool) -> dict[bytes, tuple[int, int, bool]]:
    """Every crop and mirror image that Pillow can make."""
    plain = Image.fromarray(image.permute(1, 2, 0).numpy())
    padded = ImageOps.expand(plain, padding)
    views = {}
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            crop = padded.crop((left, top, left + plain.width, top + plain.height))
            views[np.asarray(crop).tobytes()] = (top, left, False)
            if flip:
                views[np.asarray(ImageOps.mirror(crop)).tobytes()] = (top, left, True)
    return views


@pytest.mark.parametrize(("padding", "flip"), [(0, False), (2, False), (0, True), (4, True)])
def test_every_view_is_one_that_pillow_makes(padding: int, flip: bool) -> None:
    batch = random_images()
    augment = Augment(mean=(0.0,) * 3, std=(1 / 255,) * 3, padding=padding, flip=flip)
    out = augment(batch, torch.Generator().manual_seed(1)).round().to(torch.uint8)
    seen = [
        all_views(image, padding, flip)[view.permute(1, 2, 0).contiguous().numpy().tobytes()]
        for image, view in zip(batch, out, strict=True)
    ]
    assert len(set(seen)) > 1 or (padding, flip) == (0, False), "the views differ from picture to picture"


def test_every_view_is_as_likely_as_another() -> None:
    batch = random_images(1, channels=1).expand(9000, 1, 8, 10)
    augment = Augment(mean=(0.0,), std=(1 / 255,), padding=1, flip=True)
    out = augment(batch, torch.Generator().manual_seed(1))
    counts = torch.unique(out.flatten(1), dim=0, return_counts=True)[1]
    assert len(counts) == 18
    expected = 9000 / 18
    # Chi-square with 17 degrees of freedom: 45 is passed once in 4,000 times.
    assert float(((counts - expected) ** 2 / expected).sum()) < 45


def test_normalization_is_the_usual_one() -> None:
    batch = random_images()
    mean, std = torch.tensor([0.5071, 0.4865, 0.4409]), torch.tensor([0.2673, 0.2564, 0.2762])
    expected = (batch.float() / 255 - mean[:, None, None]) / std[:, None, None]
    augment = Augment(tuple(mean.tolist()), tuple(std.tolist()))
    torch.testing.assert_close(augment.normalize(batch), expected)


def test_fitted_takes_the_pictures_own_mean_and_deviation() -> None:
    batch = random_images()
    fitted = Augment.fitted(ImageSet(batch, torch.zeros(len(batch), dtype=torch.int64), ("a",)), 0, False)
    values = batch.double() / 255
    torch.testing.assert_close(torch.tensor(fitted.mean).double(), values.mean((0, 2, 3)), atol=1e-6, rtol=0)
    expected = values.std((0, 2, 3), correction=0)
    torch.testing.assert_close(torch.tensor(fitted.std).double(), expected, atol=1e-6, rtol=0)


def test_pictures_of_one_colour_do_not_divide_by_zero() -> None:
    grey = ImageSet(torch.full((2, 1, 8, 8), 7, dtype=torch.uint8), torch.tensor([0, 0]), ("a",))
    assert Augment.fitted(grey, 0, False).normalize(grey.images).abs().max() < 1e-6


def test_views_depend_on_the_generator_alone() -> None:
    augment = Augment(mean=(0.5,) * 3, std=(0.25,) * 3, padding=4, flip=True)
    state = torch.get_rng_state()
    first, again, other = (augment(random_images(), torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(state, torch.get_rng_state())


def test_the_pictures_themselves_are_left_alone() -> None:
    batch = random_images()
    before = batch.clone()
    Augment(mean=(0.5,) * 3, std=(0.25,) * 3, padding=4, flip=True)(batch, torch.Generator())
    assert torch.equal(batch, before)
