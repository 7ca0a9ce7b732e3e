"""A classifier that anyone can teach from Python, and that drops into a scikit-learn pipeline."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import Fit
from sparc.data.skipped import Skipped, told
from sparc.data.sources.folder import is_split
from sparc.data.stream import hold_out
from sparc.errors import InputError
from sparc.files import check_output, locked
from sparc.learner import (
    Effort,
    Look,
    Started,
    check_validation,
    fewest_pictures,
    forget,
    learn,
    look_of,
    new_model,
    read_folder,
    rename,
    says_how_long,
    settings_of,
    started,
    suitable_recipe,
)
from sparc.methods.sparc.chorus import ChorusSettings, Inherit
from sparc.model_file import Model, load, save
from sparc.model_input import InputShape, Pictures
from sparc.predictor import scores
from sparc.starts import GLANCED, USUAL, StartChoice


class ContinualClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns new classes for ever without keeping old pictures.

    >>> from sklearn.datasets import load_digits
    >>> images, labels = (load_digits().images * 15.9).astype("uint8"), load_digits().target
    >>> early, late = labels < 3, (labels >= 3) & (labels < 5)
    >>> classifier = ContinualClassifier(width=0.25, epochs=3, flip=False)
    >>> classifier.learn(images[early], labels[early]).learn(images[late], labels[late]).classes_
    array([0, 1, 2, 3, 4])
    >>> classifier.predict(images[:4]).shape
    (4,)
    """

    def __init__(
        self,
        *,
        image_size: int | None = None,
        picture_fit: Fit = "crop",
        width: float = ChorusSettings.width,
        depth: int | None = ChorusSettings.depth,
        shared: float = ChorusSettings.shared,
        alpha: float = ChorusSettings.alpha,
        kappa: float = ChorusSettings.kappa,
        inherit: Inherit = ChorusSettings.inherit,
        statistics: int = ChorusSettings.statistics,
        patches: int = USUAL.patches,
        mirror: bool = ChorusSettings.mirror,
        start: StartChoice = "auto",
        start_size: int = ChorusSettings.start_size,
        effort: Effort = "normal",
        epochs: int | None = None,
        validation: float = 0.1,
        strict: bool = False,
        cache: bool = True,
        flip: bool = True,
        seed: int = 0,
    ) -> None:
        self.image_size = image_size
        self.picture_fit = picture_fit  # `fit` is scikit-learn's
        self.width = width
        self.depth = depth
        self.shared = shared
        self.alpha = alpha
        self.kappa = kappa
        self.inherit = inherit
        self.statistics = statistics
        self.patches = patches
        self.mirror = mirror
        self.start = start
        self.start_size = start_size
        self.effort = effort
        self.epochs = epochs
        self.validation = validation
        self.strict = strict
        self.cache = cache  # features that a start has found, for a day, in the user's cache folder
        self.flip = flip
        self.seed = seed

    def learn(self, pictures: Pictures, labels: Sequence[object] | None = None, name: str | None = None) -> Self:
        """Learn a task: a folder of class folders, or pictures with a label each. What is known already stays.

        A warning names the pictures of a folder that cannot be read, and they are skipped, unless `strict` is set.
        """
        self.model_ = self._taught(getattr(self, "model_", None), pictures, labels, name)
        return self

    def fit(self, pictures: Pictures, labels: Sequence[object] | None = None) -> Self:
        """Learn with nothing known before."""
        self.model_ = self._taught(None, pictures, labels, None)
        return self

    def partial_fit(
        self, pictures: Pictures, labels: Sequence[object] | None = None, classes: Sequence[object] | None = None
    ) -> Self:
        """`learn` by the name that scikit-learn gives it; `classes` need not be known beforehand."""
        return self.learn(pictures, labels)

    def forget(self, *classes: object) -> Self:
        """Take classes out for good."""
        check_is_fitted(self, "model_")
        self.model_ = forget(self.model_, [str(name) for name in classes])
        return self

    def rename(self, old: object, new: object) -> Self:
        """Call a class by another name."""
        check_is_fitted(self, "model_")
        self.model_ = rename(self.model_, str(old), str(new))
        return self

    def predict_proba(self, pictures: Pictures) -> NDArray[np.float32]:
        """A row a picture, a column a class in the order of `classes_`."""
        check_is_fitted(self, "model_")
        if not self.model_.info.tasks:
            raise InputError("every class has been forgotten: learn some first")
        images = self.model_.net.look(self.model_.info.shape.images(pictures), self.cache)
        probabilities: NDArray[np.float32] = scores(self.model_, images).softmax(1).numpy()
        return probabilities

    def predict(self, pictures: Pictures) -> NDArray[Any]:
        """The most likely class of each picture."""
        chosen: NDArray[Any] = self.classes_[self.predict_proba(pictures).argmax(1)]
        return chosen

    @property
    def classes_(self) -> NDArray[Any]:
        """All classes, in the order in which they were learned."""
        check_is_fitted(self, "model_")
        info = self.model_.info
        return np.array([int(name) for name in info.classes] if info.numbered else list(info.classes))

    @property
    def module_(self) -> nn.Module:
        """The net, from normalized pictures to a score for each class."""
        check_is_fitted(self, "model_")
        return self.model_.net

    def save(self, path: str | Path) -> None:
        check_is_fitted(self, "model_")
        check_output(Path(path))
        with locked(Path(path)):
            save(self.model_, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A classifier that goes on from a model file."""
        model = load(Path(path))
        info = model.info
        made = cls(**asdict(info.settings), picture_fit=info.shape.fit, flip=info.flip, seed=info.seed)
        made.model_ = model
        return made

    def _taught(
        self, model: Model | None, pictures: Pictures, labels: Sequence[object] | None, name: str | None
    ) -> Model:
        check_validation(self.validation)
        if labels is None and not isinstance(pictures, str | Path):
            raise InputError("pictures need a label each, unless they are a folder of class folders")
        made = self._started(pictures, labels) if model is None else None
        side = self.image_size if made is None else made.side(self.image_size)
        known_by = model or made
        assert known_by is not None
        splits, numbered = self._splits(pictures, labels, model, side, look_of(known_by, self.cache))
        if made is not None:
            settings, reason = made
            model = new_model(splits.train, settings, self.seed, self.flip, numbered, self.picture_fit, reason)
        assert model is not None
        if numbered is not model.info.numbered:
            raise InputError("labels are either numbers or text: these are not as those that were learned before")
        recipe = suitable_recipe(len(splits.train), self.effort, self.epochs)
        name = name or f"task {len(model.info.tasks) + 1}"
        fewest = fewest_pictures(self.effort, self.epochs)
        stays_out = labels is None and isinstance(pictures, str | Path) and is_split(Path(pictures))
        return learn(model, splits, name, recipe, fewest=fewest, stays_out=stays_out)

    def _started(self, pictures: Pictures, labels: Sequence[object] | None) -> Started:
        trains = says_how_long(self.effort, self.epochs)
        seen: Path | Tensor
        if labels is None and isinstance(pictures, str | Path):
            seen = Path(pictures)
        else:
            some = pictures if isinstance(pictures, str | Path) else pictures[:GLANCED]
            seen = InputShape.suitable(some, fit=self.picture_fit).images(some)
        return started(settings_of(self), self.start, trains, seen, self.picture_fit)

    def _splits(
        self, pictures: Pictures, labels: Sequence[object] | None, model: Model | None, side: int | None, look: Look
    ) -> tuple[Splits, bool]:
        if labels is None and isinstance(pictures, str | Path):
            if model is not None:
                model.info.shape.check_takes_pictures()
            skipped: list[Skipped] | None = None if self.strict else []
            fit = self.picture_fit
            splits = read_folder(pictures, model, side, self.validation, fit=fit, skipped=skipped, look=look)
            if skipped:
                warnings.warn("\n".join(told(skipped)), stacklevel=4)
            return splits, False
        shape = InputShape.suitable(pictures, side, self.picture_fit) if model is None else model.info.shape
        images = shape.images(pictures)
        given = np.asarray(labels)
        if len(given) != len(images) or given.ndim != 1:
            raise InputError(f"there are {len(images)} pictures, but labels of shape {given.shape}")
        if not len(given):
            raise InputError("there are no pictures to learn from")
        if given.dtype.kind not in "iuU":
            raise InputError(f"labels are whole numbers or text, not {given.dtype}: convert them")
        classes, indices = np.unique(given, return_inverse=True)
        names = tuple(str(name) for name in classes)
        everything = ImageSet(look(images), torch.from_numpy(indices), names, tuple(images.shape[1:]))
        held = hold_out(everything.labels, self.validation)
        return Splits(everything.take(~held), everything.take(held)), given.dtype.kind in "iu"
