"""How many processor threads torch may use, and what becomes of memory that is freed."""

import os

import torch

from sparc.allocator import keep_freed_memory
from sparc.errors import InputError


def use_threads(threads: int) -> None:
    """Settle, for a process of our own, how it uses the machine."""
    most = 4 * (os.cpu_count() or 1)
    if not 1 <= threads <= most:
        raise InputError(f"--threads {threads} must lie between 1 and {most}, four for each core")
    torch.set_num_threads(threads)
    keep_freed_memory()
