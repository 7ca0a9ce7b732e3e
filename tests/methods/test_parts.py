"""Parts that methods are made from, against numbers worked out by hand or a second way."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator

from sparc.errors import InputError
from sparc.methods.parts.contrastive import supervised_contrastive
from sparc.methods.parts.masks import MOST_TASKS, WeightOwners
from sparc.nn.gaussians import ClassGaussians, ClassMeans, correlations, mahalanobis
from sparc.nn.head import CosineHead
from sparc.nn.resnet import ResNet


def features(count: int, size: int = 5, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, size, generator=Generator().manual_seed(seed))


@given(st.lists(st.integers(1, 40), max_size=4), st.booleans())
def test_gaussians_are_the_same_however_the_pictures_come(cuts: list[int], tied: bool) -> None:
    values, labels = features(60) * 3 + 1e3, torch.arange(60) % 3
    gaussians = ClassGaussians(5, tied)
    for chosen in torch.arange(60).tensor_split(sorted(cuts)):
        if len(chosen):
            gaussians.add(values[chosen], labels[chosen])
    own = [np.cov(values[labels == label].double().numpy().T) for label in range(3)]
    expected = np.mean(own, axis=0)[None] if tied else np.stack(own)  # classes have as many pictures
    np.testing.assert_allclose(gaussians.covariances().numpy(), expected, rtol=1e-6, atol=1e-6)
    means = [values[labels == label].double().mean(0).numpy() for label in range(3)]
    np.testing.assert_allclose(gaussians.means.numpy(), means, rtol=1e-9)


def test_mahalanobis_distances_a_second_way() -> None:
    gaussians = ClassGaussians(5, tied=False)
    gaussians.add(features(40), torch.arange(40) % 2)
    covariances, points = gaussians.covariances(shrink=0.1), features(3, seed=1)
    found = mahalanobis(points.double(), gaussians.means, torch.linalg.inv(covariances))
    for row, point in zip(found, points.double(), strict=True):
        for distance, mean, covariance in zip(row, gaussians.means, covariances, strict=True):
            off = point - mean
            torch.testing.assert_close(distance, off @ torch.linalg.solve(covariance, off))


def test_means_alone_are_those_of_the_gaussians() -> None:
    means, gaussians = ClassMeans(5), ClassGaussians(5)
    for part in (features(40), features(30, seed=2)):
        for kept in (means, gaussians):
            kept.add(part, torch.arange(len(part)) % 3)
    torch.testing.assert_close(means.means, gaussians.means)
    point = features(1, seed=1)
    expected = torch.stack([(point[0].double() - mean).square().sum() for mean in means.means])
    torch.testing.assert_close(means.distances(point)[0], expected)


def test_correlations_are_numpy_s() -> None:
    gaussians = ClassGaussians(4, tied=False)
    gaussians.add(features(30, 4), torch.zeros(30).long())
    np.testing.assert_allclose(correlations(gaussians.covariances())[0], np.corrcoef(features(30, 4).T), rtol=1e-6)


def test_few_pictures_of_many_features_are_sound_once_shrunk() -> None:
    gaussians = ClassGaussians(50, tied=False)
    gaussians.add(features(3, 50), torch.zeros(3, dtype=torch.int64))
    covariances = gaussians.covariances(shrink=1, shrink_others=1)
    assert torch.linalg.matrix_rank(covariances[0]) == 50
    precisions = torch.linalg.inv(covariances)
    assert mahalanobis(features(2, 50, seed=1).double(), gaussians.means, precisions).isfinite().all()


def test_samples_have_the_class_s_mean_and_covariance() -> None:
    gaussians = ClassGaussians(3)
    gaussians.add(features(200, 3) @ torch.tensor([[2.0, 1, 0], [0, 1, 0], [0, 0, 0.1]]), torch.zeros(200).long())
    covariances = gaussians.covariances()
    drawn = gaussians.sample(0, 50_000, covariances, Generator().manual_seed(0))
    torch.testing.assert_close(drawn.mean(0), gaussians.means[0], atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.T.cov(), covariances[0], atol=0.08, rtol=0)


def test_contrast_a_second_way() -> None:
    views, labels = features(6), torch.tensor([0, 0, 1, 1, 1, 2])
    unit = views / views.norm(dim=1, keepdim=True)
    anchors = torch.tensor([True, False, True, True, True, True])
    terms = []
    for i in range(6):
        others = [j for j in range(6) if j != i]
        total = sum(torch.exp(unit[i] @ unit[j] / 0.5) for j in others)
        alike = [torch.log(torch.exp(unit[i] @ unit[j] / 0.5) / total) for j in others if labels[j] == labels[i]]
        if alike and anchors[i]:
            terms.append(-sum(alike) / len(alike))
    expected = sum(terms) / len(terms)
    torch.testing.assert_close(supervised_contrastive(views, labels, 0.5, anchors), expected)


def test_contrast_of_views_that_have_no_partner_is_nothing() -> None:
    views = features(3).requires_grad_()
    loss = supervised_contrastive(views, torch.arange(3), 0.5)
    loss.backward()
    assert loss == 0
    assert views.grad is not None
    assert not views.grad.any()


def test_no_more_tasks_own_weights_than_a_byte_can_name() -> None:
    with pytest.raises(InputError, match=f"{MOST_TASKS} tasks"):
        WeightOwners([torch.zeros(2)]).claim(MOST_TASKS + 1)


def test_a_cosine_head_answers_by_direction_alone_and_grows() -> None:
    head = CosineHead(5, 2, Generator().manual_seed(0), scale=4.0)
    values = features(7)
    torch.testing.assert_close(head(values), head(3 * values))
    assert head(values).abs().max() <= 4
    with torch.no_grad():
        head.scale.fill_(6)
    grown = head.grown(3, Generator().manual_seed(1))
    torch.testing.assert_close(grown(values)[:, :2], head(values))
    loaded = CosineHead(5, 0, Generator())
    loaded.load_state_dict(grown.state_dict())
    assert torch.equal(loaded(values), grown(values))


def net(classes: int, seed: int) -> ResNet:
    made = ResNet(1, (8, 8), width=1 / 16, generator=Generator().manual_seed(seed))
    made.add_classes(classes)
    return made


def test_a_copy_follows_and_grows_and_takes_no_gradient() -> None:
    original, copy = net(5, seed=0), net(2, seed=1).as_copy(stays_eval=False)
    before = {name: value.clone() for name, value in copy.named_parameters()}
    copy.follow(original, keep=0.75)
    for (name, mine), other in zip(copy.named_parameters(), original.parameters(), strict=True):
        old = torch.cat((before[name], other[2:])) if name.startswith("head") else before[name]
        torch.testing.assert_close(mine, 0.75 * old + 0.25 * other)
        assert not mine.requires_grad
    assert copy.train().training
    assert not copy.eval().training


def test_a_teacher_stays_in_eval_mode_and_becomes_what_it_copies() -> None:
    original, teacher = net(5, seed=0).eval(), net(2, seed=1).as_copy()
    teacher.become(original)
    assert not teacher.train().training
    images = torch.randn(2, 1, 8, 8, generator=Generator().manual_seed(0))
    assert torch.equal(teacher(images), original(images))
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
