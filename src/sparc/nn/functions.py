"""What nets share to be fast: the layout of maps, and two functions with backward passes of their own.

Autograd's would compute what nobody needs, or slowly. Maps are channels-last throughout: a pixel's channels lie side by
side, so a map is also a matrix, a pixel a row. docs/speed.md has the measurements.

Shapes: B batch, C input channels, N output channels, H × W the map, P = B·H·W pixels.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import conv2d


def pointwise(x_BCHW: Tensor, own: Tensor, semantic: Tensor) -> Tensor:  # noqa: N803
    """The 1×1 convolution with two owners' filters, [N, C, 1, 1] together."""
    if _leave_to_autograd(x_BCHW):
        return conv2d(x_BCHW, torch.cat((own, semantic)))
    out: Tensor = _Pointwise.apply(x_BCHW, own, semantic)  # type: ignore[no-untyped-call]
    return out


def two_of_each(x_BCHW: Tensor, weight: Tensor) -> Tensor:  # noqa: N803
    """Every second pixel in both directions; each channel goes to two, with a weight [2 C, 1, 1, 1] each."""
    if _leave_to_autograd(x_BCHW):
        return conv2d(x_BCHW, weight, stride=2, groups=x_BCHW.shape[1])
    out: Tensor = _TwoOfEach.apply(x_BCHW, weight)  # type: ignore[no-untyped-call]
    return out


def channels_last(x_BCHW: Tensor) -> Tensor:  # noqa: N803
    """The same map, laid out as all of these are fastest; `torch.func` does not know that layout."""
    return x_BCHW if _plain else x_BCHW.contiguous(memory_format=torch.channels_last)


@contextlib.contextmanager
def autograds_own() -> Iterator[None]:
    """Do without passes and a layout of our own, which `torch.func` cannot look into."""
    global _plain
    before, _plain = _plain, True
    try:
        yield
    finally:
        _plain = before


_plain = False


def _leave_to_autograd(x: Tensor) -> bool:
    """Ours know nothing of autocast's mixed types either."""
    return _plain or torch.is_autocast_enabled(x.device.type)


class _Pointwise(Function):
    """One convolution with the banks joined; backward, the bank of an owner who does not learn is left out."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, own: Tensor, semantic: Tensor) -> Tensor:
        filters = torch.cat((own, semantic))
        ctx.save_for_backward(x, filters)
        ctx.own = len(own)
        # Already so, unless x has a single channel, which lies as well one way as the other.
        return conv2d(x, filters).contiguous(memory_format=torch.channels_last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, filters = ctx.saved_tensors
        for_x, for_own, for_semantic = ctx.needs_input_grad
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        x_gradient = conv2d(gradient, filters.transpose(0, 1)) if for_x else None
        first, last = 0 if for_own else ctx.own, len(filters) if for_semantic else ctx.own
        # Not gradient × x: with the stem's 3 channels that takes five times as long.
        filter_gradient = (pixel_rows(x).T @ pixel_rows(gradient)[:, first:last]).T[:, :, None, None]
        return (
            x_gradient,
            filter_gradient[: ctx.own] if for_own else None,
            filter_gradient[ctx.own - first :] if for_semantic else None,
        )


class _TwoOfEach(Function):
    """What a grouped convolution does by a slow path: so few operations on so much data are better done one by one."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        kept = x[:, :, ::2, ::2]
        twice = pixel_rows(kept).index_select(1, torch.arange(len(weight), device=x.device) // 2)
        ctx.save_for_backward(twice, weight)
        ctx.shape = x.shape
        return (twice * weight.flatten()).view(*kept.movedim(1, -1).shape[:-1], -1).movedim(-1, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        twice, weight = ctx.saved_tensors
        batch, channels, height, width = ctx.shape
        rows = pixel_rows(gradient)
        first, second = rows.view(-1, channels, 2).unbind(2)
        first_weight, second_weight = weight.view(channels, 2).unbind(1)
        x_gradient = rows.new_zeros(batch, height, width, channels)
        kept = x_gradient[:, ::2, ::2]
        kept.copy_((first * first_weight).addcmul_(second, second_weight).view(kept.shape))
        return x_gradient.movedim(-1, 1), (twice * rows).sum(0).view(weight.shape)


def pixel_rows(x_BCHW: Tensor) -> Tensor:  # noqa: N803
    """[P, C]: no copy of a channels-last map."""
    return x_BCHW.movedim(1, -1).reshape(-1, x_BCHW.shape[1])
