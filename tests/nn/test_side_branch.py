import copy

import pytest
import torch
from torch import Generator, Tensor
from torch.nn.functional import conv2d

from sparc.nn import ResNet
from sparc.nn.head import count_parameters
from sparc.nn.resnet import Conv
from sparc.nn.side_branch import FoldableConv, SideBranchNet


def images(count: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(count, 2, 8, 8, generator=Generator().manual_seed(seed))


def net_of(kind: type[ResNet], seed: int = 0) -> ResNet:
    net = kind(2, (8, 8), width=1 / 8, generator=Generator().manual_seed(seed))
    net.add_classes(3)
    return net


def net() -> SideBranchNet:
    """One whose batch norms have seen something, and have learned."""
    made = net_of(SideBranchNet)
    assert isinstance(made, SideBranchNet)
    generator = Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.2 * torch.rand(parameter.shape, generator=generator)
    for seed in range(5):
        made.train()(images(9, seed))
    return made.eval()


def branched() -> SideBranchNet:
    """One whose branches have learned."""
    made = net()
    made.fold()
    made.add_branches()
    generator = Generator().manual_seed(2)
    with torch.no_grad():
        for branch in made.branches():
            branch.normal_(std=0.1, generator=generator)
    return made


def test_before_anything_is_folded_it_is_the_resnet_to_the_bit() -> None:
    plain, ours = net_of(ResNet), net_of(SideBranchNet)
    for mode in (True, False):
        assert torch.equal(plain.train(mode)(images()), ours.train(mode)(images()))
    plain.train()(images()).square().sum().backward()
    ours.train()(images()).square().sum().backward()
    for (name, theirs), (own_name, own) in zip(plain.named_parameters(), ours.named_parameters(), strict=True):
        assert name == own_name
        assert torch.equal(theirs, own), name
        assert theirs.grad is not None
        assert own.grad is not None
        assert torch.equal(theirs.grad, own.grad), name
    assert plain.state_dict().keys() == ours.state_dict().keys()


def test_batch_norms_fold_into_their_convolutions() -> None:
    folding = net()
    norm = folding.stem[1]
    assert isinstance(norm, torch.nn.BatchNorm2d)
    assert norm.running_var is not None
    norm.running_var[0] = norm.eps  # so small that what is added to it matters
    before = folding(images())
    folding.fold()
    torch.testing.assert_close(folding(images()), before, rtol=1e-4, atol=1e-5)
    assert torch.equal(folding.train()(images()), folding.eval()(images())), "there is no batch norm left"
    assert not any("running" in name for name in folding.state_dict())


@pytest.mark.parametrize("stride", [1, 2])
def test_a_branch_is_a_convolution_beside_the_other(stride: int) -> None:
    generator = Generator().manual_seed(0)
    unit = FoldableConv(torch.nn.Sequential(Conv(4, 6, 3, stride, generator), torch.nn.BatchNorm2d(6))).eval()
    unit.fold()
    unit.add_branch()
    assert unit.branch is not None
    with torch.no_grad():
        unit.branch.normal_(generator=generator)
        assert unit.conv.bias is not None
        unit.conv.bias.normal_(generator=generator)
    x = torch.randn(3, 4, 7, 8, generator=generator)
    beside = conv2d(x, unit.conv.weight, unit.conv.bias, stride, 1) + conv2d(x, unit.branch, None, stride)
    torch.testing.assert_close(unit(x), beside)
    unit(x).square().sum().backward()
    (expected,) = torch.autograd.grad(beside.square().sum(), unit.branch)
    torch.testing.assert_close(unit.branch.grad, expected, rtol=1e-4, atol=1e-4)


def test_new_branches_change_nothing_and_stand_beside_every_convolution_of_a_block() -> None:
    made = net()
    made.fold()
    before = made(images())
    made.add_branches()
    assert torch.equal(made(images()), before)
    assert len(made.branches()) == 2 * 4
    assert [block.shortcut.branch for block in made.blocks if len(block.shortcut)] == [None]  # type: ignore[arg-type]


def test_folding_branches_changes_no_logit_and_leaves_a_net_as_large_as_before() -> None:
    plain, made = net(), branched()
    plain.fold()
    size = count_parameters(plain)
    assert count_parameters(made) > size
    before = made(images())
    assert not torch.allclose(before, plain(images()))
    made.fold()
    assert torch.equal(made(images()), before)
    assert count_parameters(made) == size
    assert made.state_dict().keys() == plain.state_dict().keys()


def test_features_before_are_those_without_branches() -> None:
    plain, made = net(), branched()
    plain.fold()
    now = made.features(images())
    before = made.features_before(images())
    assert torch.equal(before, plain.features(images()))
    assert not before.requires_grad
    assert torch.equal(made.features(images()), now), "and the branches are back"


def test_a_fresh_net_takes_on_a_state_from_any_moment() -> None:
    made = branched()
    moments = [net(), copy.deepcopy(made)]
    made.fold()
    moments.append(copy.deepcopy(made))
    made.add_branches()
    moments.append(made)
    later = net_of(SideBranchNet, seed=7).eval()
    for moment in moments:
        fresh = net_of(SideBranchNet, seed=9).eval()
        for loaded in (fresh, later):  # the second one has taken on all states before
            loaded.load_state_dict(moment.state_dict())
            assert list(loaded.state_dict()) == list(moment.state_dict())
            assert [name for name, _ in loaded.named_parameters()] == [name for name, _ in moment.named_parameters()]
            assert torch.equal(loaded(images()), moment(images()))
