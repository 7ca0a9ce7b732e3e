"""The model file: one safetensors file with the weights, and in its metadata all that is known of them.

No code is ever executed from it, nothing in it is believed before it was checked, and whoever reads it while it is
written sees the old file or the new one, never a part.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Generator, Tensor

from sparc.calibration import Check, known_strangeness, limit, temperature
from sparc.errors import InputError
from sparc.files import write_atomic
from sparc.from_json import build
from sparc.methods.sparc.chorus import ChorusSettings
from sparc.model_input import InputShape
from sparc.nn.chorus import ChorusNet, pooled_features
from sparc.nn.efficientnet import FEATURES as START_FEATURES
from sparc.nn.inference import InferenceNet
from sparc.nn.layout import layer_filters
from sparc.nn.lite0_weights import WeightsError
from sparc.nn.patches import FEATURES
from sparc.nn.sparc import layout
from sparc.nn.strangeness import Strangeness

KEY = "sparc-model"
VERSION = 6
_SETTINGS_1 = frozenset({"width", "depth", "shared", "alpha", "kappa"})
_SETTINGS_2 = {"inherit": "nothing", "statistics": 0, "mirror": False}
"""How the models of versions 1 and 2 were made, which did not say so."""
_SETTINGS_3 = {"patches": 0}
"""The same of version 3."""
_DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}


def is_number(name: str) -> bool:
    """Whether a class goes by a whole number.

    >>> is_number("-7"), is_number("7a")
    (True, False)
    """
    return re.fullmatch("-?[0-9]{1,19}", name) is not None


@dataclass(frozen=True)
class LearnedTask:
    """What is known of one portion of classes, and of its working memory if it has one."""

    name: str
    classes: tuple[str, ...]
    """Some of them may have been taught before."""
    pictures: tuple[int, ...]
    """Of each class, learned from."""
    held_out: int
    """Pictures kept back from training for validation."""
    accuracy_in_task: float | None
    """On the pictures held out, in percent, among this task's classes."""
    accuracy_in_all: float | None
    """The same among all classes known by then."""
    learned: str
    """When, in UTC."""
    epochs: int
    seconds: float
    share_in_semantic: float
    """How much of the semantic memory comes from this task."""
    taught_semantic: bool = False
    """The semantic memory was trained along with this task, instead of its filters being mixed in afterwards."""
    seen: int | None = None
    """From how many pictures its working memory has learned, with those of older ones that it has started from; None
    where it has none, and its classes are told by statistics alone."""
    check: Check | None = None
    """What the pictures held out have said of probabilities and strangeness."""

    def __post_init__(self) -> None:
        if not self.classes or len(self.classes) != len(self.pictures):
            raise ValueError("a task should have classes, and a number of pictures for each")
        if len(set(self.classes)) < len(self.classes):
            raise ValueError("a task should have every class once")
        if self.seen is not None and self.seen < 1:
            raise ValueError("a working memory should have learned from pictures")


@dataclass(frozen=True)
class ModelInfo:
    """All that is known of a net, beside its weights."""

    shape: InputShape
    settings: ChorusSettings
    mean: tuple[float, ...]
    std: tuple[float, ...]
    tasks: tuple[LearnedTask, ...] = ()
    made_with: str = ""
    seed: int = 0
    flip: bool = True
    """Mirror images are learned as well."""
    numbered: bool = False
    """The classes' names are whole numbers, and are given back as such."""
    start_reason: str = ""
    """Why it was made with its start, or from scratch."""

    def __post_init__(self) -> None:
        if not len(self.mean) == len(self.std) == self.shape.channels or not all(value > 0 for value in self.std):
            raise ValueError("there should be a mean and a positive deviation for every channel")
        if self.settings.depth is None:
            raise ValueError("it should say how deep its net is")
        if not self.settings.describes_all and any(task.seen is None for task in self.tasks):
            raise ValueError("without common features its tasks should have working memories")
        if not self.settings.describes_all and any(check.strangeness for check in self.checks):
            raise ValueError("without common features no picture should be strange")
        if len({task.name for task in self.tasks}) < len(self.tasks):
            raise ValueError("its tasks should have names of their own")
        if self.numbered and not all(map(is_number, self.classes)):
            raise ValueError("its classes should be numbers")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Every class once, in the order in which they were first learned."""
        return tuple(dict.fromkeys(name for task in self.tasks for name in task.classes))

    @property
    def checks(self) -> list[Check]:
        return [task.check for task in self.tasks if task.check is not None]

    @cached_property
    def temperature(self) -> float:
        """What scores are divided by before they become probabilities."""
        return temperature(self.checks)

    @cached_property
    def known_strangeness(self) -> list[float]:
        """Of pictures of known classes that were held out, in rising order."""
        return known_strangeness(self.checks, len(self.classes))

    def limit(self, share: float) -> float | None:
        """How strange a picture may be, so that this share of pictures of known classes pass, if that is known."""
        return limit(self.known_strangeness, share)

    def labels(self, task: LearnedTask) -> list[int]:
        """Which of all classes a task's are."""
        return [self._index[name] for name in task.classes]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: label for label, name in enumerate(self.classes)}

    def new_net(self, generator: Generator | None = None) -> ChorusNet:
        """A net that has learned none of the tasks."""
        return self.settings.new_net(self.shape.channels, self.shape.image_size, self.flip, generator)

    def grown_net(self) -> ChorusNet:
        """A net that has room for all that the tasks have taught, and nothing in it but in which order."""
        net = self.new_net()
        for task in self.tasks:
            if task.seen is None:
                net.add_portion(len(task.classes), self.labels(task))
            else:
                net.add_task(len(task.classes), self.labels(task), task.seen).freeze()
        for voice, known in zip(net.all_voices(), net.known_classes(), strict=True):
            voice.gaussians.grow(len(known))
        return net

    def bytes_after(self, tasks: int) -> int:
        """How large the weights were when so many of the tasks had been learned."""
        net = replace(self, tasks=self.tasks[:tasks]).grown_net()
        return sum(tensor.nbytes for tensor in _tensors(net).values())

    def fewest_bytes(self) -> int:
        """How large the weights of all tasks are at the least, before anything is allocated."""
        assert self.settings.depth is not None
        filters = layer_filters(self.settings.width, self.settings.depth)
        units = layout(self.shape.channels, filters, self.settings.shared)
        trained = [task for task in self.tasks if task.seen is not None]
        outputs = sum(len(task.classes) for task in trained) * (units[-1].own + units[-1].shared)
        own = sum(unit.channels * (unit.shared + len(trained) * (9 + unit.own)) for unit in units)
        common = 0 if not self.settings.patches else min(FEATURES, self.settings.patches)
        common = START_FEATURES if self.settings.start != "nothing" else common
        # A class is known to its own working memory at the least, and every working memory has a covariance.
        known = sum(len(task.classes) for task in trained)
        statistics = [
            (min(pooled_features(units), self.settings.statistics), known, len(trained)),
            (common, len(self.classes), 1),
        ]
        described = sum(
            features * classes + scatters * features * (features + 1) // 2 for features, classes, scatters in statistics
        )
        return 4 * (outputs + own) + 8 * described


@dataclass(frozen=True, eq=False)
class Model:
    """A net, frozen, and all that is known of it."""

    net: ChorusNet
    info: ModelInfo
    version: int = VERSION
    """Of the file that it was read from."""

    @cached_property
    def inference(self) -> InferenceNet:
        """The net as it answers fastest; to fold it takes as long as to answer for one picture."""
        return InferenceNet.of(self.net)

    @cached_property
    def strangeness(self) -> Strangeness | None:
        """Of pictures, by their common features, if it has such."""
        return self.net.strangeness()

    def parameters_added(self) -> list[int]:
        """By each task: its working memory and its head."""
        counts = self.net.parameter_counts()
        added = map(sum, zip(counts.tasks, counts.heads, strict=True))
        return [0 if task.seen is None else next(added) for task in self.info.tasks]


def save(model: Model, path: Path) -> None:
    tensors = _tensors(model.net)
    about = asdict(model.info)
    description = {"version": VERSION, "sha256": _digest(tensors, about), "about": about}
    # One entry alone, as safetensors writes several in an order that changes from run to run.
    write_atomic(path, to_bytes(tensors, {KEY: json.dumps(description, ensure_ascii=False)}))


def load(path: Path) -> Model:
    """Read a model, or say in one sentence why this is none."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a {'folder' if path.is_dir() else 'device or a pipe'}: name a model file")
    try:
        with path.open("rb") as opened:  # safetensors takes a file that may not be read for one that is not there
            size = os.fstat(opened.fileno()).st_size
        with safe_open(path, framework="pt") as file:
            description = _description(path, file.metadata() or {})
            about = description.get("about")
            info = build(ModelInfo, _as_now(about, description["version"]))
            if info.fewest_bytes() > size:
                raise ValueError("it is too small for the net that it describes")
            net = info.grown_net()
            if description["version"] < 5:  # when a class that was taught twice was kept as two
                for voice, heard in zip(net.all_voices(), net.heard_classes(), strict=True):
                    voice.gaussians.grow(len(heard))
            expected = _tensors(net)
            names = {name: _name_in(description["version"], name) for name in expected}
            if set(file.keys()) != set(names.values()):
                raise ValueError("it does not hold the tensors of the net that it describes")
            for name, tensor in expected.items():
                part = file.get_slice(names[name])
                if part.get_shape() != list(tensor.shape) or part.get_dtype() != _DTYPES[tensor.dtype]:
                    raise ValueError(f"tensor {names[name]} is not as the net that it describes has it")
            tensors = {name: file.get_tensor(names[name]) for name in expected}
        if not all(tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("some of its weights are no numbers")
        if _digest({names[name]: tensor for name, tensor in tensors.items()}, about) != description.get("sha256"):
            raise ValueError("its content does not match its checksum")
        net.load_state_dict({**net.state_dict(), **tensors})
        for voice, heard, known in zip(net.all_voices(), net.heard_classes(), net.known_classes(), strict=True):
            if len(voice.gaussians) > len(known):
                voice.gaussians.merge([known.index(label) for label in heard])
        _check_statistics(net, info)
    except FileNotFoundError as error:
        raise InputError(f"there is no model {path}: make one with sparc learn FOLDER --model {path}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}): name a model file") from error
    except SafetensorError as error:
        raise InputError(f"{path} is not a model, or was cut off ({error}): name another file") from error
    except (_NotOursError, WeightsError):
        raise
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}): bring back an older copy") from error
    return Model(net.eval(), info, description["version"])


def load_taught(path: Path) -> Model:
    """A model that knows at least one class."""
    model = load(path)
    if not model.info.tasks:
        raise InputError(f"{path} knows no class: teach it some with sparc learn FOLDER --model {path}")
    return model


class _NotOursError(InputError):
    """The file may be whole, but it is none that this version reads."""


def _description(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    if KEY not in metadata:
        raise _NotOursError(f"{path} is a safetensors file, but no SPARC model: name another file")
    try:
        description = json.loads(metadata[KEY])
    except RecursionError as error:
        raise ValueError("its description is nested too deeply") from error
    if not isinstance(description, dict):
        raise ValueError("its description is not an object")
    version = description.get("version")
    if version not in range(1, VERSION + 1):
        raise _NotOursError(f"{path} is of version {version!s:.20}, and this sparc reads 1 to {VERSION}: update sparc")
    return description


def _as_now(about: Any, version: int) -> Any:
    """What a file of an older version says of its model, as this version says it."""
    if not (version < 5 and isinstance(about, dict) and isinstance(about.get("shape"), dict)):
        return about  # which is refused where it is not as it should be
    if version == 1:  # had the settings among the fields of the model and of its shape
        parts = about, about["shape"]
        model, shape = ({name: part[name] for name in part if name not in _SETTINGS_1} for part in parts)
        settings = {name: part[name] for part in parts for name in part if name in _SETTINGS_1}
        about = {**model, "shape": shape, "settings": settings}
    settings, tasks = about.get("settings"), about.get("tasks")
    if not isinstance(settings, dict) or not isinstance(tasks, list):
        return about
    added = {**(_SETTINGS_2 if version < 3 else {}), **(_SETTINGS_3 if version < 4 else {})}
    return {
        **about,
        "settings": {**settings, **added},
        "tasks": _with_seen(tasks, {**settings, **added}.get("inherit")),
    }


def _with_seen(tasks: list[Any], inherit: object) -> list[Any]:
    """Tasks of before version 5, each of which had a working memory."""
    seen, found = 0, []
    for task in tasks:
        pictures = task.get("pictures") if isinstance(task, dict) else None
        if not isinstance(pictures, list) or not all(isinstance(count, int) for count in pictures):
            return tasks
        seen = sum(pictures) + (seen if inherit != "nothing" else 0)
        found.append({**task, "seen": max(seen, 1)})
    return found


def _name_in(version: int, name: str) -> str:
    """What a tensor is called in a file of an older version."""
    if version >= 5:
        return name
    return name.replace("common_voice.", "patch_voice.").replace("common.", "patches.")


def _check_statistics(net: ChorusNet, info: ModelInfo) -> None:
    """Refuse statistics that are not of the pictures that were learned from, or from which no answer follows."""
    if not all(voice.seed >= 0 and (voice.scale > 0).all() for voice in net.all_voices()):
        raise ValueError("its statistics have no seed or scale that there can be")
    counts = [count for task in info.tasks for count in task.pictures]
    for voice, heard in zip(net.all_voices(), net.heard_classes(), strict=True) if info.tasks else ():
        pictures = Counter[int]()
        for label, count in zip(heard, counts[len(counts) - len(heard) :], strict=True):
            pictures[label] += count
        if voice.gaussians.counts.tolist() != list(pictures.values()) or min(pictures.values()) < 1:
            raise ValueError("its statistics are not of the pictures that it has learned from")
        if not voice.is_sound():
            raise ValueError("its statistics are of no pictures that there can be")


def _digest(tensors: Mapping[str, Tensor], about: object) -> str:
    """A checksum of all weights, with their names, and of all that is said of them."""
    total = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        total.update(name.encode())
        total.update(tensor.numpy().data)
    return total.hexdigest()


def _tensors(net: ChorusNet) -> dict[str, Tensor]:
    """All but how the net has grown, which follows from the description, and weights that others have trained."""
    return {
        name: value.detach().cpu().contiguous()
        for name, value in net.state_dict().items()
        if not name.endswith("_extra_state")
    }
