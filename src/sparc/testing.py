"""Testing a model on pictures in folders of their classes: for the command line and the server."""

from pathlib import Path

from sparc.calibration import calibration_error
from sparc.data.class_folders import Classes, class_folders
from sparc.data.skipped import Skipped
from sparc.data.tree import Tree
from sparc.discovery import nearest
from sparc.errors import InputError
from sparc.model_info import ModelInfo
from sparc.predictor import Confusion


def known_classes(
    folder: Tree, info: ModelInfo, called: Path | str, skipped: list[Skipped] | None = None, *, strict: bool = False
) -> Classes:
    """The pictures of each class, all of which the model, which is `called` so, has to know.

    Those that lie in no class folder are added to `skipped`; `strict` refuses them.
    """
    classes, known = class_folders(folder, skipped, strict=strict), info.classes
    for name in classes:
        if name not in known:
            meant = nearest(name, known)
            raise InputError(f"{folder / name} is named after no class of {called}: {meant} (or move it elsewhere)")
    return classes


def as_json(found: Confusion) -> dict[str, object]:
    return {
        "pictures": found.pictures,
        "accuracy_in_all": found.accuracy_in_all,
        "accuracy_in_task": found.accuracy_in_task,
        "calibration_error": calibration_error(found.bins),
        "classes": [
            {"class": name, "pictures": given.total(), "right": given[name], "taken_for": dict(given)}
            for name, given in found.counts.items()
        ],
    }
