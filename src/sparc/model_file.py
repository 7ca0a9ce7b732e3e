"""The model file: one safetensors file with the weights, and in its metadata all that is known of them.

Whoever reads it while it is written sees the old file or the new one, never a part. `stored_model.py` has what is
checked before anything in it is believed.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from sparc.data.augment import Augment
from sparc.data.pictures import Kept, Pixels
from sparc.files import write_atomic
from sparc.model_info import LearnedTask as LearnedTask
from sparc.model_info import ModelInfo as ModelInfo
from sparc.nn.batched import predict_batched
from sparc.nn.chorus import ChorusNet
from sparc.nn.inference import InferenceNet
from sparc.nn.strangeness import Strangeness
from sparc.onnx_model import NoRuntimeError, of_tensors
from sparc.ready import Floats, ReadyModel
from sparc.stored_model import KEY, VERSION, StoredModel, check_taught, digest_of, expected_tensors, read


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

    @cached_property
    @torch.no_grad()
    def most_alike(self) -> Sequence[int] | None:
        """Of each class the one whose mean lies nearest, in the common features and by their covariance."""
        voice = self.net.common_voice
        if voice is None or len(voice.gaussians) < 2:
            return None
        # (a − b)ᵀ S⁻¹ (a − b), with S⁻¹ a being the discriminant of a.
        weights, means = voice.gaussians.discriminants()[0], voice.gaussians.means
        products = weights @ means.T
        distances = products.diag()[:, None] + products.diag() - products - products.T
        nearest: list[int] = distances.fill_diagonal_(torch.inf).argmin(1).tolist()
        return nearest

    def look(self, images: Pixels, cache: bool) -> Kept:
        """As `ReadyModel` has it, and the next too: by torch."""
        found: Kept = self.net.look(torch.from_numpy(images), cache).numpy()
        return found

    @torch.inference_mode()
    def answer(self, looked: Kept) -> tuple[Floats, Floats | None]:
        net, strangeness = self.inference, self.strangeness if len(looked) else None

        def answer(x: Tensor) -> Tensor:
            if strangeness is None:
                return net(x)
            features = net.pooled(x)
            return torch.cat((net.readout(features), strangeness(features[-1])[:, None]), dim=1)

        normalize = Augment(self.info.mean, self.info.std).normalize
        found = predict_batched(answer, torch.from_numpy(looked), normalize).numpy()
        classes = len(self.info.classes)
        return found[:, :classes], None if strangeness is None else found[:, classes]

    @cached_property
    def ready(self) -> ReadyModel:
        """What answers fastest: its graph in onnxruntime, where that is there."""
        try:
            tensors = {name: tensor.numpy() for name, tensor in tensors_of(self.net).items()}
            return of_tensors(self.info, tensors, torch.get_num_threads())
        except NoRuntimeError:
            return self


def save(model: Model, path: Path) -> None:
    tensors = tensors_of(model.net)
    about = asdict(model.info)
    description = {
        "version": VERSION,
        "sha256": digest_of({name: tensor.numpy() for name, tensor in tensors.items()}, about),
        "about": about,
    }
    # One entry alone, as safetensors writes several in an order that changes from run to run.
    write_atomic(path, to_bytes(tensors, {KEY: json.dumps(description, ensure_ascii=False)}))


def load(path: Path) -> Model:
    """Read a model, or say in one sentence why this is none."""
    return of_stored(read(path))


def of_stored(stored: StoredModel) -> Model:
    """A model from what lies in its file."""
    tensors, net = stored.tensors, stored.info.grown_net()
    assert tensors.keys() == tensors_of(net).keys()
    net.load_state_dict({**net.state_dict(), **{name: torch.from_numpy(value) for name, value in tensors.items()}})
    return Model(net.eval(), stored.info, stored.version)


def load_taught(path: Path) -> Model:
    """A model that knows at least one class."""
    model = load(path)
    check_taught(model.info, path)
    return model


def tensors_of(net: ChorusNet) -> dict[str, Tensor]:
    """All but how the net has grown, which follows from the description, and weights that others have trained."""
    return {
        name: value.detach().cpu().contiguous()
        for name, value in net.state_dict().items()
        if not name.endswith("_extra_state")
    }


def bytes_after(info: ModelInfo, tasks: int) -> int:
    """How large the weights were when so many of the tasks had been learned."""
    expected = expected_tensors(replace(info, tasks=info.tasks[:tasks])).values()
    return sum(math.prod(shape) * int(kind[1:]) // 8 for shape, kind in expected)
