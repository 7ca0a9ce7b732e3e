"""Memory that is freed is kept for the next step.

A step frees its maps of some megabytes each; glibc gives them back to the system and asks for them again at the next
step, and the system then clears every page of them: between a twentieth and an eighth of a step's time.
"""

import ctypes
from functools import cache

# glibc's numbers, from malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3


@cache
def keep_freed_memory() -> None:
    """Ask glibc's malloc not to give memory back; where there is another malloc, nothing happens."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no glibc; TypeError is Windows' word for it
        return
    # An older glibc refuses the first number; without the second either, the rest would make things worse.
    if mallopt(M_MMAP_THRESHOLD, 1 << 28) or mallopt(M_MMAP_THRESHOLD, 1 << 25):
        mallopt(M_TRIM_THRESHOLD, 1 << 30)
        mallopt(M_TOP_PAD, 1 << 28)
