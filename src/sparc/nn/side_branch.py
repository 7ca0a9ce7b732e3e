"""A ResNet that goes on to learn beside what it has learned, and is as large afterwards as it was before.

What has been learned is folded: batch norms into their convolutions, once and for all. Then each 3×3 convolution of a
block can be given a 1×1 one beside it, which starts at zero, so that nothing changes at first, and whose kernel is in
the end added to the centre of the other's (Zhu et al., CVPR 2022; Ding et al., "RepVGG", CVPR 2021). The two are linear
and see the same pixels, so already while the branch learns they are computed as the one convolution that they will
become.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from sparc.nn.resnet import Conv, ResidualBlock, ResNet


class FoldableConv(nn.Sequential):
    """A convolution and its batch norm; once folded, a convolution with a bias, which may have a branch beside it."""

    branch: nn.Parameter | None
    """[N, C, 1, 1]"""

    def __init__(self, parts: nn.Sequential) -> None:
        super().__init__(*parts)
        self.register_parameter("branch", None)
        self.without_branch = False
        """To be computed as if there were none."""

    @property
    def conv(self) -> Conv:
        return cast(Conv, self[0])

    @property
    def folded(self) -> bool:
        return self.conv.bias is not None

    def forward(self, x: Tensor) -> Tensor:
        if self.branch is None or self.without_branch:
            out: Tensor = self[1](self[0](x))
            return out
        return conv2d(x, self._joined(self.branch), self.conv.bias, self.conv.stride, padding=1)

    def add_branch(self) -> None:
        assert self.folded, "batch norm would come after it"
        self.branch = nn.Parameter(torch.zeros_like(self.conv.weight[:, :, :1, :1]))

    @torch.no_grad()
    def fold(self) -> None:
        """Become one convolution, of what is there now."""
        conv = self.conv
        if not self.folded:
            norm = cast(nn.BatchNorm2d, self[1])
            assert norm.running_mean is not None
            assert norm.running_var is not None
            # In double precision, so that nothing is lost to it.
            scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
            conv.weight = nn.Parameter((conv.weight * scale[:, None, None, None]).to(conv.weight.dtype))
            conv.bias = nn.Parameter((norm.bias - norm.running_mean * scale).to(conv.weight.dtype))
            self[1] = nn.Identity()
        if self.branch is not None:
            conv.weight = nn.Parameter(self._joined(self.branch))
            self.branch = None

    def _joined(self, branch: Tensor) -> Tensor:
        return self.conv.weight + pad(branch, (1, 1, 1, 1))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take on the form of what is loaded."""
        if f"{prefix}0.bias" in state_dict and not self.folded:
            self.fold()
        self.branch = None
        if f"{prefix}branch" in state_dict:
            self.add_branch()
        super()._load_from_state_dict(state_dict, prefix, *rest)


class SideBranchNet(ResNet):
    """As it is made it learns as a ResNet does, to the bit.

    >>> net = SideBranchNet(width=1 / 8)
    >>> net.fold()
    >>> net.add_branches()
    >>> len(net.branches())  # two of each of 8 blocks
    16
    """

    def build(self, channels: int, filters: list[int]) -> None:
        super().build(channels, filters)
        self.stem = FoldableConv(self.stem)
        for block in self.blocks:
            assert isinstance(block, ResidualBlock)
            block.first, block.second = FoldableConv(block.first), FoldableConv(block.second)
            if len(block.shortcut):
                block.shortcut = FoldableConv(block.shortcut)

    @property
    def folded(self) -> bool:
        return all(conv.folded for conv in self._convs())

    def fold(self) -> None:
        for conv in self._convs():
            conv.fold()

    def add_branches(self) -> None:
        """Beside the two convolutions of each block; stem and shortcuts stay as they are."""
        for block in self.blocks:
            for conv in (block.first, block.second):
                assert isinstance(conv, FoldableConv)
                conv.add_branch()

    def branches(self) -> list[nn.Parameter]:
        return [conv.branch for conv in self._convs() if conv.branch is not None]

    @torch.no_grad()
    def features_before(self, x: Tensor) -> Tensor:
        """As they were when branches were added: what these stand beside has not changed."""
        convs = self._convs()
        for conv in convs:
            conv.without_branch = True
        try:
            return self.features(x)
        finally:
            for conv in convs:
                conv.without_branch = False

    def _convs(self) -> list[FoldableConv]:
        return [module for module in self.modules() if isinstance(module, FoldableConv)]
