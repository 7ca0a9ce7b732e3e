import numpy as np
import pytest
import torch
from sklearn.svm import LinearSVC

from sparc.data.augment import Augment
from sparc.data.stream import Stream
from sparc.methods.parts.single import SingleNetSettings
from sparc.methods.prototypes.fetril import FeTrIL, linear_svm, translated
from sparc.train import Trainer, seeded
from tests.examples import AUGMENT
from tests.methods.contract import recipe


def test_old_classes_are_played_by_the_new_class_most_like_them() -> None:
    features = torch.tensor([[4.0, 1.0], [6.0, -1.0], [0.0, 2.0], [0.0, 4.0]])
    labels = torch.tensor([2, 2, 3, 3])
    means = torch.tensor([[1.0, 10.0], [8.0, 1.0], [5.0, 0.0], [0.0, 3.0]])
    played, names = translated(features, labels, means, old=2)
    assert names.tolist() == [0, 0, 1, 1]
    assert played.tolist() == [[1, 9], [1, 11], [7, 2], [9, 0]]


def test_with_the_first_task_nobody_is_played() -> None:
    played, names = translated(torch.ones(3, 2), torch.tensor([0, 0, 1]), torch.ones(2, 2), old=0)
    assert (len(played), len(names)) == (0, 0)


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_the_classifier_tells_classes_apart_whatever_their_number(classes: int) -> None:
    corners = torch.tensor([[1.0, 0.0], [-1.0, 0.3], [0.2, -1.0]])[:classes]
    labels = torch.arange(30) % classes
    features = corners[labels] + 0.1 * torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    weight, bias = linear_svm(features, labels, classes)
    assert (weight.shape, bias.shape) == ((classes, 2), (classes,))
    assert torch.equal((features @ weight.T + bias).argmax(1), labels)


def test_it_minimises_the_support_vector_machine_s_loss() -> None:
    """Squared hinge with C 1, the bias penalized as scikit-learn does: no step in any direction lowers it."""
    generator = torch.Generator().manual_seed(1)
    features, labels = torch.randn(40, 3, generator=generator).double(), torch.arange(40) % 3
    weight, bias = linear_svm(features.float(), labels, 3)
    whole = torch.cat((weight, bias[:, None]), 1).double().requires_grad_()
    said = torch.cat((features, torch.ones(40, 1)), 1) @ whole.T
    signs = torch.where(labels[:, None] == torch.arange(3), 1.0, -1.0)
    loss = 0.5 * whole.square().sum() + (1 - signs * said).clamp_min(0).square().sum()
    loss.backward()
    assert whole.grad is not None
    assert whole.grad.abs().max() < 0.05


def test_it_answers_as_a_machine_that_was_fitted_to_new_and_translated_features(
    stream: Stream, augment: Augment
) -> None:
    method = FeTrIL(SingleNetSettings(width=1 / 8), 1, (8, 8), AUGMENT, seeded(0, "method"))
    trainer = Trainer(method, recipe(FeTrIL), 0)
    for task in stream[:2]:
        trainer.learn(task)
    with torch.no_grad():
        first, second = (method.eval().net.features(augment.normalize(task.train.images)) for task in stream[:2])
        found = method.logits(augment.normalize(stream.test(1).images))
        asked = method.net.features(augment.normalize(stream.test(1).images))
    labels = stream[1].train.labels
    means = [first[stream[0].train.labels == label].mean(0) for label in (0, 1)]
    new = {label: second[labels == label] for label in (2, 3, 4)}
    rows, names = [second], [labels]
    for label, mean in enumerate(means):
        like = {each: float(torch.cosine_similarity(mean, own.mean(0), dim=0)) for each, own in new.items()}
        played = new[max(like, key=like.__getitem__)]
        rows.append(played - played.mean(0) + mean)
        names.append(torch.full((len(played),), label))
    features = torch.cat(rows)
    units = (features / features.norm(dim=1, keepdim=True)).double().numpy()
    machine = LinearSVC(dual=False).fit(units, torch.cat(names).numpy())
    expected = machine.decision_function((asked / asked.norm(dim=1, keepdim=True)).double().numpy())
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-3)


def test_what_is_kept_is_a_mean_a_class_and_the_classifier(stream: Stream, augment: Augment) -> None:
    method = FeTrIL(SingleNetSettings(width=1 / 8), 1, (8, 8), AUGMENT, seeded(0, "method"))
    trainer = Trainer(method, recipe(FeTrIL), 0)
    for task in stream:
        trainer.learn(task)
    features = method.net.head.in_features
    owners = method.parameters_by_owner()
    assert owners["means"] == 6 * (features + 1), "and how many pictures it is of"
    assert owners["weight"] + owners["bias"] == 6 * (features + 1)
    with torch.no_grad():
        mine = method.net.features(augment.normalize(stream[0].train.images))
    expected = mine[stream[0].train.labels == 1].mean(0)
    torch.testing.assert_close(method.means.means[1].float(), expected, atol=1e-5, rtol=1e-4)
