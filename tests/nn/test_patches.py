"""Features of patches, against a second way that takes every patch by itself."""

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from sparc.nn import patches as module
from sparc.nn.eras import ERAS
from sparc.nn.patch_numbers import FLAT, PATCHES, ROOT, SIDE, THRESHOLD, PatchKind
from sparc.nn.patches import PatchFeatures


def drawn(channels: int = 3, mirror: bool = False, seed: int = 0, kind: PatchKind = PATCHES) -> PatchFeatures:
    patches = PatchFeatures(channels, mirror, kind)
    patches.draw(torch.rand(30, channels, 12, 9, generator=Generator().manual_seed(seed)), Generator().manual_seed(0))
    return patches


def by_hand(patches: PatchFeatures, picture: Tensor) -> np.ndarray:
    """[filters and their opposites, rows, columns], not pooled."""
    windows = np.lib.stride_tricks.sliding_window_view(picture.double().numpy(), (SIDE, SIDE), axis=(1, 2))
    rows = windows.transpose(1, 2, 0, 3, 4).reshape(*windows.shape[1:3], -1)
    rows = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, ddof=1, keepdims=True) + FLAT)
    found = rows @ patches.filters.double().flatten(1).numpy().T + patches.bias.double().numpy()
    return np.maximum(np.concatenate((found, -found), axis=2) - THRESHOLD, 0).transpose(2, 0, 1)


@pytest.mark.parametrize("era", ERAS)
def test_features_are_what_every_patch_by_itself_has_in_common_with_each_filter(era: int) -> None:
    kind = ERAS[era].patches
    patches = drawn(kind=kind)
    picture = torch.rand(3, 13, 10, generator=Generator().manual_seed(1))  # 8 × 5 patches: quarters overlap
    above = by_hand(patches, picture)
    quarters = [above[:, rows, columns] for rows in (slice(4), slice(4, 8)) for columns in (slice(3), slice(2, 5))]
    means = np.stack([quarter.mean((1, 2)) for quarter in quarters], axis=1)
    cells = {0: [], 1: [above], 2: quarters}[kind.peaks]
    peaks = [np.stack([cell.max((1, 2)) for cell in cells], axis=1).ravel()] if cells else []
    expected = np.sqrt(np.concatenate([means.ravel(), *peaks]) + ROOT)
    found = patches(picture[None])[0]
    assert len(found) == kind.features
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert expected.std() > 0.01


def test_filters_answer_whitened_patches() -> None:
    """On patches like those it was drawn from, what filters answer has about the same variance in all directions."""
    patches = PatchFeatures(1)
    random = Generator().manual_seed(0)
    smooth = torch.nn.functional.avg_pool2d(torch.rand(400, 1, 20, 20, generator=random), 3, 1)
    patches.draw(smooth, random)
    windows = smooth.unfold(2, SIDE, 3).unfold(3, SIDE, 3).reshape(-1, SIDE**2)
    windows = (windows - windows.mean(1, keepdim=True)) / (windows.var(1, keepdim=True) + FLAT).sqrt()
    spread = (windows @ patches.filters.flatten(1).T).std(0)
    raw = (windows @ torch.nn.functional.normalize(patches.filters.flatten(1)).T).std(0)
    assert spread.max() / spread.min() < raw.max() / raw.min()
    assert 0.3 < float(spread.mean()) < 1.5


def test_brightness_and_contrast_of_a_picture_hardly_matter() -> None:
    patches, picture = drawn(), 10 * torch.rand(1, 3, 12, 9, generator=Generator().manual_seed(2))
    torch.testing.assert_close(patches(2 * picture + 1), patches(picture), atol=0.02, rtol=0.02)


def test_the_mirror_image_counts_as_much() -> None:
    patches, pictures = drawn(mirror=True), torch.rand(4, 3, 12, 9, generator=Generator().manual_seed(2))
    torch.testing.assert_close(patches(pictures.flip(3)), patches(pictures))


def test_pieces_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    patches, pictures = drawn(), torch.rand(5, 3, 12, 9, generator=Generator().manual_seed(2))
    whole = patches(pictures)
    monkeypatch.setattr(module, "MAP_BYTES", 1)
    torch.testing.assert_close(patches(pictures), whole)


def test_flat_pictures_have_features_too() -> None:
    patches = PatchFeatures(3)
    patches.draw(torch.zeros(2, 3, 8, 8), Generator().manual_seed(0))
    assert patches(torch.zeros(2, 3, 8, 8)).isfinite().all()
    assert drawn()(torch.ones(2, 3, 8, 8)).isfinite().all()


def test_the_same_pictures_give_the_same_filters() -> None:
    assert torch.equal(drawn().filters, drawn().filters)
    assert not torch.equal(drawn().filters, drawn(seed=1).filters)
