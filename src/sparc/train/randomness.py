"""Where chance comes from: generators of our own, and the state of those that everybody shares."""

import hashlib
import random
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor


def seeded(seed: int, purpose: str) -> Generator:
    """A generator of its own for each purpose, so that drawing more for one does not move the others."""
    digest = hashlib.sha256(f"{purpose} {seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def shared_generators() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of torch's, numpy's and Python's own generators: nothing of ours draws from them, a plug-in may."""
    version, words, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    tensors = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(keys, dtype=np.int64)),
        "python": torch.tensor(words, dtype=torch.int64),
    }
    if torch.cuda.is_available():
        tensors |= {f"cuda{device}": state for device, state in enumerate(torch.cuda.get_rng_state_all())}
    return tensors, {"python": [version, gauss], "numpy": [kind, position, has_gauss, cached]}


def restore_shared_generators(tensors: dict[str, Tensor], rest: dict[str, Any]) -> None:
    version, gauss = rest["python"]
    random.setstate((version, tuple(tensors["python"].tolist()), gauss))
    kind, position, has_gauss, cached = rest["numpy"]
    np.random.set_state((kind, tensors["numpy"].numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(tensors["torch"])
    if torch.cuda.is_available():
        for device in range(torch.cuda.device_count()):
            if (state := tensors.get(f"cuda{device}")) is not None:
                torch.cuda.set_rng_state(state, device)
