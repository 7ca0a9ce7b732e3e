"""How many processor threads torch may use."""

import os

import torch

from sparc.errors import InputError


def use_threads(threads: int) -> None:
    most = 4 * (os.cpu_count() or 1)
    if not 1 <= threads <= most:
        raise InputError(f"--threads {threads} must lie between 1 and {most}, four for each core")
    torch.set_num_threads(threads)
