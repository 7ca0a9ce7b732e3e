"""A classifier that anyone can teach from Python, and that drops into a scikit-learn pipeline."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from sparc.data.class_folders import split_of
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import Fit
from sparc.data.skipped import Skipped, told
from sparc.data.sources.folder import some_pictures
from sparc.data.stream import hold_out
from sparc.data.tree import Tree
from sparc.edit import forget, rename
from sparc.errors import InputError
from sparc.files import check_output, locked
from sparc.learner import (
    Effort,
    Look,
    Wishes,
    check_validation,
    read_folder,
    settings_of,
    teach,
)
from sparc.methods.sparc.settings import ChorusSettings, Inherit
from sparc.model_file import Model, load, save
from sparc.model_input import InputShape, Pictures, some_of
from sparc.predictor import USUAL_SHARE, Answers, answers, check_passing
from sparc.starts import USUAL, StartChoice


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
        weigh: bool = ChorusSettings.weigh,
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
        self.weigh = weigh
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

        A warning names the pictures of a folder that cannot be read, or lie in no class folder, and they are skipped;
        where `strict` is set, the first of them is an error.
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
        return self._answers(pictures).probabilities()

    def predict(self, pictures: Pictures) -> NDArray[Any]:
        """The most likely class of each picture."""
        chosen: NDArray[Any] = self.classes_[self.predict_proba(pictures).argmax(1)]
        return chosen

    def is_known(self, pictures: Pictures, share: float = USUAL_SHARE) -> NDArray[np.bool_]:
        """Whether each picture may be of a class that was learned: no stranger than this share of such pictures are.

        Where too few were held out to tell, all may be.
        """
        check_passing(share)
        return self._answers(pictures).are_known(share)

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

    def _answers(self, pictures: Pictures) -> Answers:
        check_is_fitted(self, "model_")
        if not self.model_.info.tasks:
            raise InputError("every class has been forgotten: learn some first")
        model = self.model_.ready
        return answers(model, model.look(model.info.shape.arrays(pictures), self.cache))

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
        name = name or f"task {len(model.info.tasks) + 1 if model else 1}"
        fit = self.picture_fit
        how = self.flip, self.seed, self.effort, self.epochs, self.cache
        wishes = Wishes(settings_of(self), self.start, self.image_size, fit, *how)
        if labels is not None:
            given = np.asarray(labels)
            read, some = partial(self._labelled, model, pictures, given), partial(some_of, pictures, fit)
            return teach(model, wishes, name, some, read, numbered=given.dtype.kind in "iu")
        if not isinstance(pictures, str | Path):
            raise InputError("pictures need a label each, unless they are a folder of class folders")
        folder = Tree.at(pictures)
        read, some = partial(self._in_folders, model, folder), partial(some_pictures, folder, fit)
        _, set_aside = split_of(folder)
        return teach(model, wishes, name, some, read, stays_out=set_aside is not None)

    def _in_folders(self, model: Model | None, folder: Tree, side: int | None, look: Look) -> Splits:
        if model is not None:
            model.info.shape.check_takes_pictures()
        skipped: list[Skipped] | None = None if self.strict else []
        splits = read_folder(folder, model, side, self.validation, fit=self.picture_fit, skipped=skipped, look=look)
        if skipped:
            warnings.warn("\n".join(told(skipped)), stacklevel=5)
        return splits

    def _labelled(
        self, model: Model | None, pictures: Pictures, labels: NDArray[Any], side: int | None, look: Look
    ) -> Splits:
        shape = InputShape.suitable(pictures, side, self.picture_fit) if model is None else model.info.shape
        images = shape.images(pictures)
        if len(labels) != len(images) or labels.ndim != 1:
            raise InputError(f"there are {len(images)} pictures, but labels of shape {labels.shape}")
        if not len(labels):
            raise InputError("there are no pictures to learn from")
        if labels.dtype.kind not in "iuU":
            raise InputError(f"labels are whole numbers or text, not {labels.dtype}: convert them")
        if model is not None and model.info.numbered is not (labels.dtype.kind in "iu"):
            raise InputError("labels are either numbers or text: these are not as those that were learned before")
        classes, indices = np.unique(labels, return_inverse=True)
        names = tuple(str(name) for name in classes)
        everything = ImageSet(look(images), torch.from_numpy(indices), names, tuple(images.shape[1:]))
        held = hold_out(everything.labels, self.validation)
        return Splits(everything.take(~held), everything.take(held))
