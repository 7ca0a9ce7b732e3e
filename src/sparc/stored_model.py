"""What lies in a model file, read and checked with numpy alone.

No code is ever executed from it, and nothing in it is believed before it was checked.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize

from sparc.errors import InputError
from sparc.from_json import build
from sparc.model_info import ModelInfo
from sparc.nn.described import USUAL_SHRINKAGE, Described
from sparc.nn.layout import ParameterCounts, pooled_features
from sparc.nn.lite0_weights import WeightsError
from sparc.nn.patch_numbers import PATCH_SHRINKAGE, SIDE

KEY = "sparc-model"
VERSION = 8
Tensors = Mapping[str, NDArray[Any]]
_SETTINGS_1 = frozenset({"width", "depth", "shared", "alpha", "kappa"})
_SETTINGS_2 = {"inherit": "nothing", "statistics": 0, "mirror": False}
"""How the models of versions 1 and 2 were made, which did not say so."""
_SETTINGS_3 = {"patches": 0}
"""The same of version 3."""
_SETTINGS_6 = {"weigh": False}
"""The same of versions 4 to 6."""
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I64": np.dtype("<i8")}
_STATE_OF_NORMS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_STATISTICS = frozenset({"common", "common_voice", "voices"})
Kind = tuple[tuple[int, ...], str]
"""A tensor's shape, and its numbers' type as safetensors calls it."""


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A file's content: its description has been checked, and its tensors are when they are asked for."""

    path: Path
    sha256: str
    """Of the whole file."""
    version: int
    info: ModelInfo
    about: Any
    """What `info` was built from."""
    checksum: object
    """What the file says that `digest_of` its content is."""
    parts: Mapping[str, Any]
    """Of each tensor the shape, the type and the bytes, by the name that it has in the file."""

    def check(self) -> None:
        """Refuse a damaged file: tensors are checked when they are first asked for."""
        self.tensors  # noqa: B018

    @cached_property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """By the names, and in the form, that files of the present version have."""
        with _telling(self.path):
            found = self._checked()
            for voice in voices(self.info, found).values():
                if not voice.seed >= 0 or not (voice.scale > 0).all():
                    raise ValueError("its statistics have no seed or scale that there can be")
                if self.info.tasks and not voice.is_sound():
                    raise ValueError("its statistics are of no pictures that there can be")
        return found

    def _checked(self) -> dict[str, NDArray[Any]]:
        """Tensors that are those of the net, and whose checksum is right."""
        expected = expected_tensors(self.info, taught_twice=self.version < 5)
        names = {name: _name_in(self.version, name) for name in expected}
        if set(self.parts) != set(names.values()):
            raise ValueError("it does not hold the tensors of the net that it describes")
        for name, (shape, dtype) in expected.items():
            part = self.parts[names[name]]
            if tuple(part["shape"]) != shape or part["dtype"] != dtype:
                raise ValueError(f"tensor {names[name]} is not as the net that it describes has it")
        tensors = {name: _array(self.parts[names[name]]) for name in expected}
        if not all(np.isfinite(tensor).all() for tensor in tensors.values()):
            raise ValueError("some of its weights are no numbers")
        if digest_of({names[name]: tensor for name, tensor in tensors.items()}, self.about) != self.checksum:
            raise ValueError("its content does not match its checksum")
        self._check_counts(tensors)
        return self._merged(tensors)

    def _check_counts(self, tensors: Tensors) -> None:
        """Refuse statistics that are not of the pictures that were learned from."""
        counts = [count for task in self.info.tasks for count in task.pictures]
        for prefix, heard in zip(voice_names(self.info), self.info.roll.heard_classes(), strict=True):
            if not self.info.tasks:
                continue
            taught = list(zip(heard, counts[len(counts) - len(heard) :], strict=True))
            pictures = Counter[int]()
            for label, count in taught:
                pictures[label] += count
            wanted = [count for _, count in taught] if self.version < 5 else list(pictures.values())
            found = tensors[f"{prefix}.gaussians.counts"].tolist()
            if found != wanted or min(pictures.values()) < 1:
                raise ValueError("its statistics are not of the pictures that it has learned from")

    def _merged(self, tensors: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Before version 5 a class that was taught twice was kept as two."""
        if self.version >= 5:
            return tensors
        roll = self.info.roll
        found = voices(self.info, tensors)
        for (prefix, voice), heard, known in zip(
            found.items(), roll.heard_classes(), roll.known_classes(), strict=True
        ):
            if len(heard) > len(known):
                one = voice.merged([known.index(label) for label in heard])
                tensors |= {
                    f"{prefix}.gaussians.counts": one.counts,
                    f"{prefix}.gaussians.means": one.means,
                    f"{prefix}.gaussians.scatters": one.scatter[None],
                }
        return tensors


def read(path: Path) -> StoredModel:
    """A model's file, or in one sentence why this is none."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a {'folder' if path.is_dir() else 'device or a pipe'}: name a model file")
    with _telling(path):
        content = path.read_bytes()
        parts = dict(deserialize(content))  # type: ignore[no-untyped-call]
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        description = _description(path, header.get("__metadata__") or {})
        about = description.get("about")
        info = build(ModelInfo, _as_now(about, description["version"]))
        if info.fewest_bytes() > len(content):
            raise ValueError("it is too small for the net that it describes")
        info.settings.check_channels(info.shape.channels)
    digest = hashlib.sha256(content).hexdigest()
    return StoredModel(path, digest, description["version"], info, about, description.get("sha256"), parts)


def check_taught(info: ModelInfo, path: Path) -> None:
    if not info.tasks:
        raise InputError(f"{path} knows no class: teach it some with sparc learn FOLDER --model {path}")


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Say of whatever is wrong with a file which it is, and what to do."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(f"there is no model {path}: make one with sparc learn FOLDER --model {path}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}): name a model file") from error
    except SafetensorError as error:
        if path.suffix == ".onnx":
            raise InputError(f"{path} is an ONNX file, and not a model: name the file that sparc learn made") from error
        raise InputError(f"{path} is not a model, or was cut off: name a file that sparc learn made") from error
    except (_NotOursError, WeightsError):
        raise
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}): bring back an older copy") from error


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
    if not (version < 8 and isinstance(about, dict) and isinstance(about.get("shape"), dict)):
        return about  # which is refused where it is not as it should be
    if version == 7:  # said of a model of before that it was early
        return {**{name: about[name] for name in about if name != "early"}, "era": 1 if about.get("early") else 7}
    if version == 1:  # had the settings among the fields of the model and of its shape
        parts = about, about["shape"]
        model, shape = ({name: part[name] for name in part if name not in _SETTINGS_1} for part in parts)
        settings = {name: part[name] for part in parts for name in part if name in _SETTINGS_1}
        about = {**model, "shape": shape, "settings": settings}
    settings, tasks = about.get("settings"), about.get("tasks")
    if not isinstance(settings, dict) or not isinstance(tasks, list):
        return about
    added = {**(_SETTINGS_2 if version < 3 else {}), **(_SETTINGS_3 if version < 4 else {}), **_SETTINGS_6}
    settings = {**settings, **added}
    return {
        **about,
        "era": 1,
        "settings": settings,
        "tasks": _with_seen(tasks, settings.get("inherit")) if version < 5 else tasks,
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


def _array(part: Any) -> NDArray[Any]:
    """A tensor, as safetensors gives it, that may be written to."""
    found: NDArray[Any] = np.frombuffer(bytearray(part["data"]), _DTYPES[part["dtype"]])
    return found.reshape(part["shape"])


def digest_of(tensors: Tensors, about: object) -> str:
    """A checksum of all weights, with their names, and of all that is said of them."""
    total = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        total.update(name.encode())
        total.update(tensor.data)
    return total.hexdigest()


def voice_names(info: ModelInfo) -> list[str]:
    """What the statistics of each working memory, and those of the common features, go by."""
    memories = sum(task.seen is not None for task in info.tasks) if info.settings.statistics else 0
    return [f"voices.{number}" for number in range(memories)] + ["common_voice"] * info.settings.describes_all


def voices(info: ModelInfo, tensors: Tensors) -> dict[str, Described]:
    """All statistics of classes, by the names that they go by."""
    common = PATCH_SHRINKAGE if info.settings.start == "nothing" else info.its_era.start_shrinkage
    return {
        name: Described.of(tensors, name, common if name == "common_voice" else USUAL_SHRINKAGE)
        for name in voice_names(info)
    }


def expected_tensors(info: ModelInfo, taught_twice: bool = False) -> dict[str, Kind]:
    """What the net of a description holds; where classes that were `taught_twice` are kept as two, of each of them."""
    found: dict[str, Kind] = {}
    for number, unit in enumerate(info.units):
        found[f"semantic.filters.{number}"] = (unit.shared, unit.channels, 1, 1), "F32"
    heads = [len(task.classes) for task in info.tasks if task.seen is not None]
    for number, outputs in enumerate(heads):
        for name, unit in zip(conv_names(len(info.units)), info.units, strict=True):
            conv, filters = f"working.{number}.{name}", unit.own + unit.shared
            found[f"{conv}.depthwise"] = (unit.channels, 1, 3, 3), "F32"
            found[f"{conv}.pointwise"] = (unit.own, unit.channels, 1, 1), "F32"
            for each in ("weight", "bias", "running_mean", "running_var"):
                found[f"{conv}.norm.{each}"] = (filters,), "F32"
            found[f"{conv}.norm.num_batches_tracked"] = (), "I64"
            if unit.stride > 1:
                found[f"{conv.removesuffix('.first')}.shortcut.weight"] = (2 * unit.channels, 1, 1, 1), "F32"
        features = info.units[-1].own + info.units[-1].shared
        found[f"working.{number}.head.weight"] = (outputs, features), "F32"
        found[f"working.{number}.head.bias"] = (outputs,), "F32"
    if info.settings.patches and info.settings.start == "nothing":
        count = info.its_era.patches.filters
        found["common.filters"] = (count, info.shape.channels, SIDE, SIDE), "F32"
        found["common.bias"] = (count,), "F32"
    roll = info.roll
    for name, classes in zip(
        voice_names(info), roll.heard_classes() if taught_twice else roll.known_classes(), strict=True
    ):
        if name == "common_voice":
            features, kept = info.common_features, info.common_kept
        else:
            features = pooled_features(info.units)
            kept = min(features, info.settings.statistics)
        found |= {f"{name}.{each}": ((features,), "F32") for each in ("shift", "scale")}
        found[f"{name}.seed"] = (), "I64"
        found[f"{name}.gaussians.counts"] = (len(classes),), "I64"
        found[f"{name}.gaussians.means"] = (len(classes), kept), "F64"
        found[f"{name}.gaussians.scatters"] = (1, kept * (kept + 1) // 2), "F64"
    return found


def parameter_counts(info: ModelInfo) -> ParameterCounts:
    """As the net of a description has them, without torch."""
    memories = [0] * sum(task.seen is not None for task in info.tasks)
    heads, semantic = [*memories], 0
    for name, (shape, _) in expected_tensors(info).items():
        owner, *rest = name.split(".")
        if owner == "semantic":
            semantic += math.prod(shape)
        elif owner == "working" and rest[-1] not in _STATE_OF_NORMS:
            owners = heads if rest[1] == "head" else memories
            owners[int(rest[0])] += math.prod(shape)
    return ParameterCounts(tuple(memories), tuple(heads), semantic)


def count_statistics(info: ModelInfo) -> int:
    """As `ChorusNet.count_statistics`, without torch."""
    kept = expected_tensors(info).items()
    return sum(math.prod(shape) for name, (shape, _) in kept if shape and name.split(".")[0] in _STATISTICS)


def parameters_added(info: ModelInfo) -> list[int]:
    """By each task: its working memory and its head."""
    counts = parameter_counts(info)
    added = map(sum, zip(counts.tasks, counts.heads, strict=True))
    return [0 if task.seen is None else next(added) for task in info.tasks]


def conv_names(count: int) -> list[str]:
    """What so many separable convolutions of a working memory are called in it."""
    blocks = [f"blocks.{number}.{name}" for number in range(count // 2) for name in ("first", "second")]
    return ["stem", *blocks]
