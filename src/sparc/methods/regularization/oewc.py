"""Online EWC: parameters on which the old tasks' answers depend, by the Fisher information, are held where they were.

Kirkpatrick et al., "Overcoming Catastrophic Forgetting in Neural Networks", PNAS 2017; Schwarz et al., "Progress &
Compress", ICML 2018, who keep one running sum for all tasks. After each task the diagonal of the Fisher information is
taken as the field does: the mean over its pictures of p(y | x) times the squared gradients of log p(y | x), at the true
label y. Pictures are not augmented. The penalty is λ Σ F (θ − θ*)², without EWC's factor ½.

Batch norm is as in a test. The field's code leaves it in training mode, on single pictures, where a net hardly knows
what it has learned; its λ of 10 was found with that. It suits nets that have learned their pictures well and whose
information is small for that. Ours is many times as large as the field's, and a λ as many times smaller holds as
strongly; 0.3 does best on held-out pictures after two epochs a task (results/README.md).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from sparc.data.imageset import ImageSet
from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_share
from sparc.methods.parts.penalty import QuadraticPenalty
from sparc.methods.parts.single import SingleNetSettings
from sparc.nn.functions import autograds_own
from sparc.nn.growing import GrowingNet
from sparc.nn.head import count_parameters

GRADIENTS = 1 << 26
"""Numbers in memory as gradients of single pictures; more than 16 pictures at a time are no faster."""


@dataclass(frozen=True)
class OewcSettings(SingleNetSettings):
    renamed: ClassVar = {"strength": "lam"}

    lam: float = 0.3
    """λ: weight of the penalty; the shorter a task is trained, the smaller."""
    gamma: float = 1.0
    """How much of the old tasks' Fisher information is kept at each task."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("--lam", self.lam)
        check_share("--gamma", self.gamma)


class OnlineEWC(QuadraticPenalty):
    name = "oewc"
    title = "oEWC"
    paper = "Schwarz et al., ICML 2018"
    Settings = OewcSettings

    def __init__(self, settings: OewcSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        self.lam, self.gamma = settings.lam, settings.gamma

    def end_task(self, task: Task) -> None:
        self.zero_grad()
        self.consolidate(self.fisher(task.train), keep=self.gamma)

    @torch.no_grad()
    def fisher(self, pictures: ImageSet) -> list[Tensor]:
        self.net.eval()
        sums = [torch.zeros_like(parameter) for parameter in self.net.parameters()]
        at_once = max(4, min(16, GRADIENTS // count_parameters(self.net)))
        for chunk, right in zip(pictures.images.split(at_once), pictures.labels.split(at_once), strict=True):
            images, labels = self.augment.normalize(chunk.to(self.device)), right.to(self.device)
            share = self.net(images).softmax(1).gather(1, labels[:, None]).flatten()
            for total, each in zip(sums, gradients(self.net, images, labels), strict=True):
                total += torch.tensordot(share, each.square(), 1)
        return [total / len(pictures) for total in sums]


def gradients(net: GrowingNet, images: Tensor, labels: Tensor) -> list[Tensor]:
    """Of log p(label | image), a row a picture, for each parameter."""
    parameters = {name: parameter.detach() for name, parameter in net.named_parameters()}
    buffers = dict(net.named_buffers())

    def log_likelihood(parameters: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(net, (parameters, buffers), (image[None],))
        return -cross_entropy(logits, label[None])

    with autograds_own():
        found: dict[str, Tensor] = vmap(grad(log_likelihood), in_dims=(None, 0, 0))(parameters, images, labels)
    return list(found.values())
