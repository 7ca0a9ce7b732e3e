"""Where runs are done: their folder, the data, the device, and what else does not change a result's meaning."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from sparc.data import benchmarks
from sparc.data.imageset import Splits
from sparc.data.progress import Progress
from sparc.errors import InputError
from sparc.experiment.config import RunConfig
from sparc.files import check_writable


@dataclass
class Workplace:
    """Where runs are done, and how."""

    out: Path = Path("runs")
    """Where the runs' folders are made, and looked for."""
    data: Path | None = None
    """Where the data sets lie; without it $SPARC_DATA, then the user's cache, then a download."""
    device: str = "cpu"
    """Where to compute: cpu, cuda, mps."""
    bf16: bool = False
    """Train in bfloat16 where it is safe; on cuda alone, and with other results beyond rounding."""
    fresh: bool = False
    """Start over what has been run already, or in part."""
    checkpoint_minutes: float = 5.0
    """How often, between the ends of epochs, to keep what a run that is cut off goes on from."""
    loaded: dict[tuple[str, int | None], Splits] = field(default_factory=dict, compare=False, repr=False)
    """Pictures of the last run, kept for the next: by the benchmark and the image size that a config names."""

    def check(self) -> torch.device:
        """The device, where all can be used as it stands."""
        if not self.checkpoint_minutes >= 0:
            raise InputError(f"--checkpoint-minutes {self.checkpoint_minutes:g} must not be negative")
        check_writable(self.out, "--out")
        device = _device(self.device)
        if self.bf16 and device.type != "cuda":
            raise InputError(
                f"--bf16 is for --device cuda, and {self.device} would only be slower with it: leave it out"
            )
        return device

    def has_images(self, config: RunConfig) -> bool:
        """Whether the pictures are here, loaded or on the disk."""
        return _key(config) in self.loaded or benchmarks.find(config.benchmark).present(self.data)

    def load(self, config: RunConfig, progress: Progress) -> Splits:
        key = _key(config)
        if key not in self.loaded:
            self.loaded = {}  # or there would be two in memory
            self.loaded[key] = benchmarks.find(config.benchmark).load(self.data, config.stream.image_size, progress)
        return self.loaded[key]


def _key(config: RunConfig) -> tuple[str, int | None]:
    return config.benchmark, config.stream.image_size


def _device(name: str) -> torch.device:
    try:
        device = torch.ones(1, device=name)
        assert device.item() == 1
        return device.device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"--device {name} cannot be used here: leave it out, or name another that this machine has"
        ) from error
