"""How many numbers a method keeps, counted from its state."""

from torch import Tensor, nn

from sparc.methods.method import Method
from sparc.methods.parts.buffer import Buffer
from sparc.nn.pretrained import Pretrained


def kept_by_part(method: Method) -> dict[str, int]:
    """By the method's parts, those that hold nothing left out.

    Copies of the net and masks count, each of their numbers as one, however small. Batch norm's running statistics do
    not, nor do pictures in a buffer with what belongs to them, single numbers, and what is measured for a report.
    """
    own = {name: buffer.numel() for name, buffer in method.named_buffers(recurse=False) if name not in method.notes}
    parts = {name: sum(map(_kept, part.modules())) for name, part in method.named_children()}
    return {name: count for name, count in {**own, **parts}.items() if count > 1}


def kept_bytes(method: Method) -> int:
    """Bytes of the same numbers."""
    own = [each for name, each in method.named_buffers(recurse=False) if each.ndim and name not in method.notes]
    parts = [tensor for part in method.children() for module in part.modules() for tensor in _tensors(module)]
    held = sum(module.numbers for module in method.modules() if isinstance(module, Pretrained))
    return sum(tensor.nbytes for tensor in (*own, *parts)) + 4 * held


def buffer_bytes(method: Method) -> int:
    """Bytes of old pictures that are kept, and of what belongs to them."""
    return sum(module.bytes for module in method.modules() if isinstance(module, Buffer))


def _kept(module: nn.Module) -> int:
    return module.numbers if isinstance(module, Pretrained) else sum(tensor.numel() for tensor in _tensors(module))


def _tensors(module: nn.Module) -> list[Tensor]:
    if isinstance(module, Pretrained | Buffer):
        return []
    parameters: list[Tensor] = list(module.parameters(recurse=False))
    buffers = [] if isinstance(module, nn.BatchNorm2d) else list(module.buffers(recurse=False))
    return [tensor for tensor in (*parameters, *buffers) if tensor.ndim]
