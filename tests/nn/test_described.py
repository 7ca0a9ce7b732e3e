"""What numpy makes of statistics that torch has gathered."""

import numpy as np
import torch
from torch import Generator

from sparc.nn.chorus import Voice
from sparc.nn.described import Described


def described(voice: Voice) -> Described:
    tensors = {f"voice.{name}": value.numpy() for name, value in voice.state_dict().items()}
    return Described.of(tensors, "voice", voice.gaussians.shrinkage)


def test_a_class_that_was_kept_as_two_is_made_one_as_if_it_had_been_gathered_in_one_go() -> None:
    features = torch.rand(90, 6, generator=Generator().manual_seed(0)) + torch.arange(90)[:, None] / 30
    apart, together = (Voice(6, 6, seed=0, scaled=False) for _ in range(2))
    labels = torch.arange(3).repeat_interleave(30)
    apart.add(features, labels)
    together.add(features, torch.tensor([0, 1, 0])[labels])
    one, expected = described(apart).merged([0, 1, 0]), described(together)
    assert one.counts.tolist() == [60, 30]
    np.testing.assert_allclose(one.means, expected.means, rtol=1e-12)
    np.testing.assert_allclose(one.scatter, expected.scatter, rtol=1e-9, atol=1e-12)
    for found, wanted in zip(one.discriminants(), together.discriminants(), strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-4)
