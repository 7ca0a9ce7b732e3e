"""Chorus: SPARC's working memories, each starting as the newest one is, and all of them heard about later classes.

Otherwise than in SPARC, a working memory inherits all but the head of the one before it, so features grow better from
task to task while nothing old changes. When a task is over, every working memory describes the task's classes in its
own features (means, and one covariance for all classes), so that old ones can tell their classes from those that came
later. All classes are described in features of small patches as well, which nobody trains. Heads and discriminants
answer together, weighed by a few pictures that were not trained on, for the mean over a picture and its mirror image.
The semantic memory stays as the first task has left it, and so do old features. Steps are Muon's: the first task of
Seq-CIFAR100 has 77 % of held-out pictures right after 10 epochs, where AdamW had 73 % after 12.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TypeVar, cast

import torch
from torch import Generator, Tensor, nn

from sparc.data.augment import Augment, Views
from sparc.data.imageset import ImageSet
from sparc.data.stream import Task, hold_out
from sparc.methods.method import ParameterGroup, Phase
from sparc.methods.recipe import Recipe
from sparc.methods.sparc.settings import ChorusSettings, SparcSettings
from sparc.methods.sparc.sparc import SPARC
from sparc.nn.chorus import ChorusNet
from sparc.nn.eras import ERAS, TODAY, Era
from sparc.nn.gaussians import ClassGaussians
from sparc.nn.inference import InferenceNet
from sparc.nn.patches import PatchFeatures
from sparc.nn.readout import Layer, Readout
from sparc.nn.roll import Roll
from sparc.nn.sparc import WorkingMemory
from sparc.nn.start import StartFeatures

V = TypeVar("V", bound=Views)
PICTURES_FOR_PATCHES = 1000
"""Of the first task: patches are drawn from these."""
WEIGHED = 0.03
"""Share of a task's pictures that says how much heads and statistics count."""
FEWEST_WEIGHED = 20
"""Pictures of a class, at which one of them is spared for that."""
AS_THEY_ARE = Augment((0.0,) * 3, (1 / 255,) * 3)
"""Pixels from 0 to 255, which a start takes in."""


def new_net(
    settings: ChorusSettings,
    channels: int,
    image_size: tuple[int, int],
    flip: bool,
    generator: Generator | None = None,
    era: Era = ERAS[TODAY],
) -> ChorusNet:
    """A net that has learned nothing yet; `flip` says whether mirror images are learned from."""
    settings.check_channels(channels)
    shape = (channels, image_size, settings.width, settings.depth, settings.shared)
    start = StartFeatures.named(settings.start, settings.start_size)
    described = settings.statistics, settings.mirrors(flip), settings.patches, start, era
    return ChorusNet(*shape, generator, *described)


def views(settings: ChorusSettings, augment: V) -> V | Augment:
    """How pictures become what a net with these settings takes in."""
    return augment if settings.start == "nothing" else AS_THEY_ARE


class Chorus(SPARC):
    name = "chorus"
    title = "Chorus"
    paper = "this project, 2026"
    Settings = ChorusSettings
    recipe = Recipe(epochs=20, lr=0.02, optimizer="muon", weight_decay=0.05, schedule="linear", lr_warm_up=0.5)
    net: ChorusNet
    settings: ChorusSettings

    def __init__(
        self, settings: ChorusSettings, channels: int, image_size: tuple[int, int], augment: Views, generator: Generator
    ) -> None:
        super().__init__(settings, channels, image_size, views(settings, augment), generator)
        self.labels: Sequence[int] | None = None
        """Which classes a task's are, among all; without it new ones."""
        self.fewest = 0
        """Pictures a class that a working memory is trained for, where there are common features to do without it."""
        self.weighs_by_validation = False
        """The task's own held-out pictures say what counts how much, so that none are spared for it."""

    def new_net(self, settings: SparcSettings, channels: int, image_size: tuple[int, int]) -> ChorusNet:
        flip = isinstance(self.augment, Augment) and self.augment.flip
        return new_net(cast(ChorusSettings, settings), channels, image_size, flip, self.generator)

    def begin_task(self, task: Task) -> None:
        older = self.net.memories()
        if not self.wants_memory(task):
            self.net.add_portion(len(task.classes), self.labels)
            return
        inherited = [portion.seen or 0 for portion in self.net.portions] if self.settings.inherit != "nothing" else []
        memory = self.net.add_task(len(task.classes), self.labels, max(inherited, default=0) + len(task.train))
        if older and self.settings.inherit != "nothing":
            memory.inherit(self.most_alike(older, task.train) if self.settings.inherit == "alike" else older[-1])

    def wants_memory(self, task: Task) -> bool:
        """Whether a working memory is trained: not on a start, nor for one class, which has nothing to be told from."""
        pictures = len(task.train) + len(task.validation)
        enough = len(task.classes) > 1 and pictures >= self.fewest * len(task.classes)
        return self.net.common is None or (self.settings.start == "nothing" and enough)

    def features(self, pictures: ImageSet) -> Iterator[Tensor]:
        """Of each working memory in turn, by the inference form."""
        self.eval()
        folded = InferenceNet.of(self.net)
        for memory in map(folded.alone, range(folded.count)):
            yield self.predict_batched(partial(_only, memory), pictures.images)

    def described(self, pictures: ImageSet) -> Iterator[Tensor]:
        """What each voice hears of them in turn: features of each working memory, and common ones."""
        if self.net.statistics and len(self.net.working):
            yield from self.features(pictures)
        if self.net.common is not None:
            yield self.predict_batched(self.net.common, pictures.images)

    def most_alike(self, memories: Sequence[WorkingMemory], pictures: ImageSet) -> WorkingMemory:
        """The one in whose features discriminants from half of the pictures tell most of the other half apart."""
        labels = pictures.labels - pictures.labels.min()
        right = []
        for features in islice(self.features(pictures), len(memories)):
            gaussians = ClassGaussians(features.shape[1])
            gaussians.add(features[::2], labels[::2])
            weight, bias = gaussians.discriminants()
            right.append(int(((features[1::2].double() @ weight.T + bias).argmax(1) == labels[1::2]).sum()))
        return memories[right.index(max(right))]

    def phases(self, task: Task, recipe: Recipe) -> Sequence[Phase]:
        """Weight decay is for what is multiplied with many inputs, and not for vectors. Without a working memory there
        is nothing to train.
        """
        if not self.net.portions[-1].has_memory:
            return []
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        vectors = [parameter for parameter in learning if is_vector(parameter)]
        others = [parameter for parameter in learning if not is_vector(parameter)]
        groups: list[nn.Parameter | ParameterGroup] = [*others, ParameterGroup(vectors, weight_decay=0.0)]
        return [Phase(recipe, parameters=groups, images=lambda: task.train.take(~self.spared(task)))]

    def spared(self, task: Task) -> Tensor:
        """Which of the task's pictures are not trained on, but say how much heads and statistics count."""
        pictures = task.train
        wanted = self.weighs and not self.weighs_by_validation
        enough = min(filter(None, pictures.counts()), default=0) >= FEWEST_WEIGHED
        return hold_out(pictures.labels, WEIGHED if wanted and enough else 0.0)

    @property
    def weighs(self) -> bool:
        """Whether the newest portion has both a head and statistics, which are to be weighed."""
        return self.settings.weigh and self.net.roll.describes and self.net.portions[-1].has_memory

    def logits_by_part(self, images: Tensor) -> dict[str, Tensor]:
        net, roll = self.ready(), self.net.roll
        whole = net.readout
        if not whole.heads or not whole.discriminants:
            return {}
        features = net.pooled(images)
        found = {"heads alone": _counted_by(roll._replace(statistics=False, common=False), whole, [])(features)}
        if roll.common:
            *memories, patches = whole.discriminants
            found["patches alone"] = replace(whole, heads=(), discriminants=[patches])(features)
            if memories:
                found["without patches"] = _counted_by(roll._replace(common=False), whole, memories)(features[:-1])
                found["without statistics"] = _counted_by(roll._replace(statistics=False), whole, [patches])(features)
        if any(portion.weights is not None for portion in roll.portions):
            found["with usual weights"] = _counted_by(roll.unweighed(), whole, whole.discriminants)(features)
        return found

    def one_pass(self, images: Tensor) -> Tensor:
        return super().one_pass(images) if self.net.portions[-1].has_memory else self.net(images)

    @torch.no_grad()
    def end_task(self, task: Task) -> None:
        if self.net.portions[-1].has_memory:
            super().end_task(task)
        common, voice = self.net.common, self.net.common_voice
        if isinstance(common, PatchFeatures) and voice is not None and not len(voice.gaussians):
            chosen = torch.randperm(len(task.train), generator=self.generator)[:PICTURES_FOR_PATCHES]
            common.draw(self.augment.normalize(task.train.images[chosen]), self.generator)
        spared = self.spared(task)
        self.describe(task.train.take(~spared), task)
        judges = task.validation if self.weighs_by_validation else task.train.take(spared)
        if self.weighs and len(judges):
            features = [*self.features(judges)]
            if common is not None:
                features.append(self.predict_batched(common, judges.images))
            self.net.weigh(features, judges.labels - task.classes.start)
            if not self.weighs_by_validation:
                self.net.add_statistics(features[-len(self.net.all_voices()) :], self.labels_of(judges, task))

    def describe(self, pictures: ImageSet, task: Task) -> None:
        """Take in pictures of the task's classes."""
        self.net.add_statistics(self.described(pictures), self.labels_of(pictures, task))

    def labels_of(self, pictures: ImageSet, task: Task) -> Tensor:
        """Among all classes of the net."""
        return torch.tensor(self.net.portions[-1].classes)[pictures.labels - task.classes.start]

    def full_title(self) -> str:
        return self.title if self.settings.start == "nothing" else f"{self.title}, pre-trained on ImageNet"

    def parameters_by_owner(self) -> dict[str, int]:
        return {**super().parameters_by_owner(), "statistics": self.net.count_statistics()}


def _only(memory: InferenceNet, images: Tensor) -> Tensor:
    (features,) = memory.pooled(images)
    return features


def _counted_by(roll: Roll, whole: Readout, discriminants: Sequence[Layer]) -> Readout:
    """The readout with only some of its discriminants, and with trust and weights as a roll has them."""
    return replace(
        whole,
        heads=[replace(layer, say=say) for layer, say in zip(whole.heads, roll.heads(), strict=True)],
        discriminants=[replace(layer, say=say) for layer, say in zip(discriminants, roll.voices(), strict=True)],
    )


def is_vector(parameter: nn.Parameter) -> bool:
    """Whether it has one number an output: biases, norms, shortcuts."""
    return parameter.numel() == len(parameter)
