"""The depth-wise separable convolution, half of whose point-wise filters may belong to somebody else.

Shapes: B batch, C input channels, N output channels, H × W the map.
"""

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import conv2d

from sparc.nn.functions import pointwise


class SeparableConv(nn.Module):
    """3×3 depth-wise, 1×1 point-wise, batch norm; no non-linearity between the first two.

    The first `own` output channels come from this module's filters, the rest from the semantic filters handed to
    `forward`, so that who owns which filter can be seen in the types.
    """

    def __init__(self, channels: int, own: int, shared: int, stride: int, generator: Generator) -> None:
        super().__init__()
        self.stride = stride
        self.depthwise = nn.Parameter(torch.empty(channels, 1, 3, 3))
        nn.init.kaiming_normal_(self.depthwise, nonlinearity="linear", generator=generator)
        self.pointwise = nn.Parameter(new_pointwise(channels, own, own + shared, generator))
        self.norm = nn.BatchNorm2d(own + shared)

    def forward(self, x_BCHW: Tensor, semantic: Tensor) -> Tensor:  # noqa: N803
        x = conv2d(x_BCHW, self.depthwise, stride=self.stride, padding=1, groups=self.depthwise.shape[0])
        out: Tensor = self.norm(pointwise(x, self.pointwise, semantic))
        return out


def new_pointwise(channels: int, filters: int, fan_out: int, generator: Generator) -> Tensor:
    """Kaiming-normal 1×1 filters for a layer of `fan_out` output channels, of which these are `filters`."""
    return torch.empty(filters, channels, 1, 1).normal_(0, (2 / fan_out) ** 0.5, generator=generator)
