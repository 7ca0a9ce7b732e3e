import torch
from sklearn.datasets import load_digits

from sparc.data.sources import find


def test_all_pictures_of_scikit_learn_in_two_parts():
    train, test = find("digits").load()
    raw = load_digits()
    assert train.images.shape == (1442, 1, 8, 8)
    assert test.images.shape == (355, 1, 8, 8)
    assert train.class_names == test.class_names == tuple("0123456789")
    assert int(train.images.max()) == 255
    assert [a + b for a, b in zip(train.counts(), test.counts(), strict=True)] == torch.bincount(
        torch.from_numpy(raw.target)
    ).tolist()
    scaled = {(label, picture.tobytes()) for label, picture in zip(raw.target.tolist(), raw.images, strict=True)}
    back = (torch.cat((train.images, test.images)).double() * 16 / 255).round().numpy()
    labels = torch.cat((train.labels, test.labels)).tolist()
    assert {(label, picture.tobytes()) for label, picture in zip(labels, back[:, 0], strict=True)} == scaled


def test_every_fifth_of_a_class_is_for_testing():
    train, test = find("digits").load()
    raw = load_digits()
    threes = raw.images[raw.target == 3]
    assert torch.equal(test.images[test.labels == 3][0, 0].double().mul(16 / 255).round(), torch.from_numpy(threes[4]))
    for kept, held_out in zip(train.counts(), test.counts(), strict=True):
        assert held_out == (kept + held_out) // 5
