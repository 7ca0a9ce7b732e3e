"""A classifier that anyone can teach from Python, and that drops into a scikit-learn pipeline."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from sparc.data.archive import names, read
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import decode, from_pillow, is_picture, short_side
from sparc.data.sources import Folder
from sparc.data.sources.folder import suitable_size
from sparc.data.stream import hold_out
from sparc.errors import InputError
from sparc.files import check_output, locked
from sparc.learner import Effort, forget, learn, new_model, scores, suitable_recipe
from sparc.methods.sparc.sparc import SparcSettings
from sparc.model_file import Model, load, save

Pictures = NDArray[np.uint8] | Tensor | Sequence[Image.Image | str | Path] | str | Path
"""numpy N × height × width [× channels], torch N × channels × height × width, both uint8 and taken as they are; or
Pillow pictures, paths, or one folder, which are brought to the model's size."""


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
        width: float = 0.5,
        depth: int | None = None,
        shared: float = 0.5,
        alpha: float = 0.99,
        kappa: float = 5.0,
        effort: Effort = "normal",
        epochs: int | None = None,
        validation: float = 0.1,
        flip: bool = True,
        seed: int = 0,
    ) -> None:
        self.image_size = image_size
        self.width = width
        self.depth = depth
        self.shared = shared
        self.alpha = alpha
        self.kappa = kappa
        self.effort = effort
        self.epochs = epochs
        self.validation = validation
        self.flip = flip
        self.seed = seed

    def learn(self, pictures: Pictures, labels: Sequence[object] | None = None, name: str | None = None) -> Self:
        """Learn a task: a folder of class folders, or pictures with a label each. What is known already stays."""
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

    def predict_proba(self, pictures: Pictures) -> NDArray[np.float32]:
        """A row a picture, a column a class in the order of `classes_`."""
        check_is_fitted(self, "model_")
        if not self.model_.about.tasks:
            raise InputError("every class has been forgotten: learn some first")
        images = self._images(pictures, self.model_)
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
        about = self.model_.about
        return np.array([int(name) for name in about.classes] if about.numbered else list(about.classes))

    @property
    def module_(self) -> nn.Module:
        """The net, from normalized pictures to the outputs of all heads."""
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
        shape, about = model.about.shape, model.about
        made = cls(
            width=shape.width,
            depth=shape.depth,
            shared=shape.shared,
            alpha=about.alpha,
            kappa=about.kappa,
            flip=about.flip,
            seed=about.seed,
        )
        made.model_ = model
        return made

    def _taught(
        self, model: Model | None, pictures: Pictures, labels: Sequence[object] | None, name: str | None
    ) -> Model:
        splits, numbered = self._splits(pictures, labels, model)
        if model is None:
            settings = SparcSettings(
                width=self.width, depth=self.depth, shared=self.shared, alpha=self.alpha, kappa=self.kappa
            )
            model = new_model(splits.train, settings, self.seed, self.flip, numbered)
        elif numbered is not model.about.numbered:
            raise InputError("labels are either numbers or text: these are not as those that were learned before")
        recipe = suitable_recipe(len(splits.train), self.effort, self.epochs)
        return learn(model, splits, name or f"task {len(model.about.tasks) + 1}", recipe)

    def _splits(self, pictures: Pictures, labels: Sequence[object] | None, model: Model | None) -> tuple[Splits, bool]:
        if not 0 < self.validation < 1:
            raise InputError(f"validation {self.validation:g} must lie between 0 and 1")
        if labels is None:
            if not isinstance(pictures, str | Path):
                raise InputError("pictures need a label each, unless they are a folder of class folders")
            size = self.image_size if model is None else model.about.shape.image_size[0]
            return Folder(pictures, size, self.validation).load(), False
        images = self._images(pictures, model)
        given = np.asarray(labels)
        if len(given) != len(images) or given.ndim != 1:
            raise InputError(f"there are {len(images)} pictures, but labels of shape {given.shape}")
        if not len(given):
            raise InputError("there are no pictures to learn from")
        if given.dtype.kind not in "iuU":
            raise InputError(f"labels are whole numbers or text, not {given.dtype}: convert them")
        classes, places = np.unique(given, return_inverse=True)
        numbered = given.dtype.kind in "iu"
        everything = ImageSet(images, torch.from_numpy(places), tuple(str(name) for name in classes))
        held = hold_out(everything.labels, self.validation)
        places_of = (torch.nonzero(mask).flatten() for mask in (~held, held))
        return Splits(*(everything.take(index) for index in places_of)), numbered

    def _images(self, pictures: Pictures, model: Model | None) -> Tensor:
        """uint8, N × channels × height × width."""
        shape = model.about.shape if model else None
        if isinstance(pictures, Tensor | np.ndarray):
            images = _from_array(pictures)
            if shape:
                shape.check_suits(images)
            return images
        if shape and not shape.takes_picture_files:
            raise InputError("the model was taught with arrays of another form than pictures have: give it such arrays")
        listed = _listed(pictures)
        size = shape.image_size[0] if shape else self.image_size or suitable_size([_side(each) for each in listed])
        arrays = [_from_file_or_picture(each, size) for each in listed]
        if not arrays:
            return torch.empty(0, 3, size, size, dtype=torch.uint8)
        return torch.from_numpy(np.stack(arrays)).movedim(3, 1).contiguous()


def _from_array(pictures: Tensor | NDArray[np.uint8]) -> Tensor:
    images = pictures if isinstance(pictures, Tensor) else torch.from_numpy(np.ascontiguousarray(pictures))
    if images.dtype != torch.uint8 or images.ndim not in (3, 4):
        raise InputError(
            f"an array of pictures is uint8 with 3 or 4 dimensions, not {images.dtype} of shape {tuple(images.shape)}"
        )
    if images.ndim == 3:
        return images[:, None]
    return images if isinstance(pictures, Tensor) else images.movedim(3, 1).contiguous()


def _listed(pictures: Sequence[Image.Image | str | Path] | str | Path) -> Sequence[Image.Image | str | Path]:
    if not isinstance(pictures, str | Path):
        return pictures
    folder = Path(pictures)
    return [folder / name for name in names(folder, is_picture)] if folder.is_dir() else [folder]


def _side(picture: Image.Image | str | Path) -> int:
    return min(picture.size) if isinstance(picture, Image.Image) else short_side(Path(picture))


def _from_file_or_picture(picture: Image.Image | str | Path, size: int) -> NDArray[np.uint8]:
    if isinstance(picture, Image.Image):
        return from_pillow(picture, "a picture", size)
    path = Path(picture)
    ((_, data),) = read(path.parent, [path.name])
    return decode(data, str(path), size)
