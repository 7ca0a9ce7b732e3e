"""A net like SPARC's in which frozen working memories go on to learn of later classes.

A working memory's weights never change once its task is over, but the classes of later tasks can be described in its
features while their pictures are at hand: a mean a class, and one covariance for all. So an old memory can tell its own
classes from all that came later, which its head has never seen. Common features, of patches or of a net that has seen
other pictures, are trained by no task, and describe every class; some classes are known by them alone.

Shapes: B batch, K working memories, P pooled features of a memory, D of them after projection, C classes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Self, cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from sparc.nn.described import COMMON_SEED, USUAL_SHRINKAGE, Shrinkage, projection
from sparc.nn.eras import ERAS, TODAY, Era
from sparc.nn.gaussians import ClassGaussians
from sparc.nn.layout import pooled_features
from sparc.nn.patch_numbers import PATCH_SHRINKAGE
from sparc.nn.patches import PatchFeatures
from sparc.nn.readout import Layer, Readout, pooled
from sparc.nn.roll import ENOUGH, Portion, Roll, Weights
from sparc.nn.sparc import SparcNet, WorkingMemory
from sparc.nn.start import StartFeatures
from sparc.nn.strangeness import Strangeness
from sparc.nn.weighing import weigh

CommonFeatures = PatchFeatures | StartFeatures
NO_WEIGHTS = Weights(-1.0, -1.0, -1.0)
"""Stands for none where numbers are wanted."""


class Voice(nn.Module):
    """What is known of classes in one kind of features, by linear discriminants.

    Features are brought to one scale and projected at random on fewer, so that the covariance stays small; the
    projection follows from a seed, which is kept, and is drawn whenever it is needed.
    """

    def __init__(
        self, features: int, kept: int, seed: int, scaled: bool = True, shrinkage: Shrinkage = USUAL_SHRINKAGE
    ) -> None:
        """Where they are not `scaled`, what is known does not depend on which pictures came first."""
        super().__init__()
        self.scaled = scaled
        self.shift: Tensor
        self.scale: Tensor
        self.seed: Tensor
        self.register_buffer("shift", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.register_buffer("seed", torch.tensor(seed))
        self.gaussians = ClassGaussians(min(kept, features), shrinkage=shrinkage)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Nothing: it stays on the processor, in double precision, whatever device the net is moved to."""
        return self

    @torch.no_grad()
    def add(self, features: Tensor, labels: Tensor) -> None:
        """Take in pictures; labels count from the first class that is known. The first pictures set the scale."""
        if self.scaled and not len(self.gaussians):
            self.shift.copy_(features.mean(0))
            deviation = features.std(0) if len(features) > 1 else torch.ones_like(features[0])
            # One that hardly varies now may do so later, and should not drown all others then.
            self.scale.copy_(1 / deviation.clamp_min(max(float(deviation.mean()) / 10, 1e-6)))
        self.gaussians.add(((features - self.shift) * self.scale).double() @ self.projection(), labels)

    def projection(self) -> Tensor:
        """The random one, [P, D], that follows from the seed."""
        return torch.from_numpy(projection(int(self.seed), len(self.shift), self.gaussians.means.shape[1]))

    @torch.no_grad()
    def discriminants(self) -> tuple[Tensor, Tensor]:
        """Weight [C, P] and bias [C] from pooled features to log likelihoods, but for what is common to all classes."""
        weight, bias = self.gaussians.discriminants()
        weight = weight @ self.projection().T * self.scale
        return weight.float(), (bias - weight @ self.shift.double()).float()

    @torch.no_grad()
    def strangeness(self) -> Strangeness:
        """From features to how strange a picture is to whoever knows these classes."""
        return Strangeness(self.shift, self.scale, self.projection(), self.gaussians.root(), self.gaussians.means)


class ChorusNet(SparcNet):
    """Working memories, each with a voice in what is said of its own classes and of all that were taught since; and
    features that are common to all classes, with a voice in everything.

    >>> net = ChorusNet(channels=1, image_size=(8, 8), width=0.5, patches=0)
    >>> for task in range(2):
    ...     memory = net.add_task(classes=2)
    ...     net.add_statistics([torch.rand(8, 192)] * (task + 1), torch.arange(8) % 2 + 2 * task)
    >>> net.eval()(torch.zeros(7, 1, 8, 8)).shape
    torch.Size([7, 4])
    """

    def __init__(
        self,
        channels: int = 3,
        image_size: tuple[int, int] = (32, 32),
        width: float = 0.5,
        depth: int | None = None,
        shared: float = 0.5,
        generator: Generator | None = None,
        statistics: int = 256,
        mirror: bool = False,
        patches: int = 960,
        start: StartFeatures | None = None,
        era: Era = ERAS[TODAY],
    ) -> None:
        """With a `start` its features are the common ones, not those of patches. Classes are described as models
        of its era do it.
        """
        super().__init__(channels, image_size, width, depth, shared, generator)
        self.statistics = statistics
        self.mirror = mirror
        """Features are the mean over a picture and its mirror image."""
        self.portions: list[Portion] = []
        self.voices = nn.ModuleList()
        """Of each working memory."""
        self.common: CommonFeatures | None = start
        self.common_voice: Voice | None = None
        if start is not None:
            kept = start.features
            self.common_voice = Voice(kept, kept, seed=COMMON_SEED, scaled=False, shrinkage=era.start_shrinkage)
        elif patches:
            self.common = PatchFeatures(channels, mirror, era.patches)
            self.common_voice = Voice(self.common.kind.features, patches, seed=COMMON_SEED, shrinkage=PATCH_SHRINKAGE)

    @property
    def classes(self) -> int:
        """How many there are, of all portions together."""
        return self.roll.classes

    def add_task(
        self, classes: int, labels: Sequence[int] | None = None, seen: int = ENOUGH, weights: Weights | None = None
    ) -> WorkingMemory:
        """Grow by a working memory, which will have learned from so many pictures; its outputs are for new classes,
        unless `labels` say for which.
        """
        memory = super().add_task(classes)
        self.portions.append(Portion(self._labels(classes, labels), seen, weights))
        if self.statistics:
            self.voices.append(Voice(pooled_features(self.units), self.statistics, seed=len(self.voices)))
        return memory

    def add_portion(self, classes: int, labels: Sequence[int] | None = None) -> None:
        """Make room for classes that are told by statistics alone."""
        assert self.common_voice is not None, "somebody has to know them"
        self.portions.append(Portion(self._labels(classes, labels), None))

    def _labels(self, classes: int, labels: Sequence[int] | None) -> tuple[int, ...]:
        return tuple(range(self.classes, self.classes + classes) if labels is None else labels)

    @property
    def roll(self) -> Roll:
        """Who has a say about which classes."""
        return Roll(self.portions, self.statistics > 0, self.common_voice is not None)

    def head_classes(self) -> list[list[int]]:
        """Those that each head speaks for."""
        return [list(portion.classes) for portion in self.portions if portion.has_memory]

    def known_classes(self) -> list[list[int]]:
        """Those that each of all voices has heard of, in the order in which it has heard of them first."""
        return self.roll.known_classes()

    def all_voices(self) -> list[Voice]:
        """Of each working memory, and of the common features."""
        voices = [*self.voices] if self.common_voice is None else [*self.voices, self.common_voice]
        return cast(list[Voice], voices)

    def pooled(self, x: Tensor) -> list[Tensor]:
        """[B, P] of each working memory, and the common features."""
        found = [self.pooled_in(memory, x) for memory in self.memories()]
        return found if self.common is None else [*found, self.common(x)]

    def pooled_in(self, memory: WorkingMemory, x: Tensor) -> Tensor:
        (features,) = pooled(memory.maps(x, self.semantic))
        if self.mirror:
            features = (features + pooled(memory.maps(x.flip(3), self.semantic))[0]) / 2
        return features

    def add_statistics(self, features: Iterable[Tensor], labels: Tensor) -> None:
        """Let every voice take in pictures of the newest portion, each in its own features of them."""
        for voice, own, known in zip(self.all_voices(), features, self.known_classes(), strict=True):
            row = torch.full((self.classes,), -1)
            row[known] = torch.arange(len(known))
            voice.add(own, row[labels])

    def keep_classes(self, kept: Sequence[int]) -> None:
        """Drop all others, from heads and from all that is known of them; a portion of which nothing is left goes, and
        its working memory with it. Those that are kept move up.
        """
        new = {label: index for index, label in enumerate(kept)}
        for known, voice in zip(self.known_classes(), self.all_voices(), strict=True):
            voice.gaussians.keep([row for row, label in enumerate(known) if label in new])
        for memory, classes in zip(self.memories(), self.head_classes(), strict=True):
            rows = [row for row, label in enumerate(classes) if label in new]
            if len(rows) < len(classes):
                memory.keep_outputs(rows)
        left = [
            portion._replace(classes=tuple(new[label] for label in portion.classes if label in new))
            for portion in self.portions
        ]
        stay = [number for number, classes in enumerate(self.head_classes()) if any(label in new for label in classes)]
        self.portions = [portion for portion in left if portion.classes]
        self.working = nn.ModuleList(self.working[number] for number in stay)
        if self.statistics:
            self.voices = nn.ModuleList(self.voices[number] for number in stay)

    def weigh(self, features: Sequence[Tensor], labels: Tensor) -> None:
        """Let pictures of the newest portion, which its working memory was not trained on, say what counts how much.

        Features are those of each working memory, and common ones; labels count from the portion's first class.
        """
        classes, readout = list(self.portions[-1].classes), self.readout()
        features = [each.to(self.semantic.filters[0].device) for each in features]
        heads = [each[:, classes].cpu() for each in readout.logits(features)]
        voices = [each[:, classes].cpu() for each in readout.posteriors(features)]
        common = voices.pop() if self.common_voice is not None else None
        weights = weigh(torch.stack(heads).amax(0), voices, common, labels.cpu())
        self.portions[-1] = self.portions[-1]._replace(weights=weights)

    def count_statistics(self) -> int:
        """How many numbers describe classes, or patches; seeds do not, nor weights that others have trained."""
        parts = [*self.all_voices(), *([self.common] if isinstance(self.common, PatchFeatures) else [])]
        return sum(kept.numel() for part in parts for kept in part.state_dict().values() if kept.ndim)

    def look(self, images: Tensor, cache: bool) -> Tensor:
        """All that it needs of uint8 pictures: what its start finds in them, or without one the pictures themselves."""
        return self.common.look(images, cache) if isinstance(self.common, StartFeatures) else images

    def forward(self, x: Tensor) -> Tensor:
        return self.readout()(self.pooled(x))

    def readout(self) -> Readout:
        roll, device = self.roll, self.semantic.filters[0].device
        heads = [
            Layer(memory.head.weight, memory.head.bias, say)
            for memory, say in zip(self.memories(), roll.heads(), strict=True)
        ]
        voices = list(zip(self.all_voices(), roll.voices(), strict=True))
        discriminants = []
        # The newest has heard of nothing before its task is over.
        if all(len(voice.gaussians) == len(say.classes) for voice, say in voices):
            for voice, say in voices:
                weight, bias = voice.discriminants()
                discriminants.append(Layer(weight.to(device), bias.to(device), say))
        return Readout(roll.classes, heads, discriminants, roll.first_taught())

    def strangeness(self) -> Strangeness | None:
        """From common features to how strange a picture is; None where there are none."""
        voice = self.common_voice
        return None if voice is None or not len(voice.gaussians) else voice.strangeness()

    def get_extra_state(self) -> Tensor:
        """A row a portion: from how many pictures its working memory has learned, or −1, whether that is frozen, its
        weights, or −1, and its classes, then −1.
        """
        memories = iter(self.memories())
        rows = []
        for portion in self.portions:
            seen, frozen = (-1, 0) if portion.seen is None else (portion.seen, next(memories).frozen)
            row = [seen, frozen, *(portion.weights or NO_WEIGHTS), *portion.classes]
            rows.append(torch.tensor(row, dtype=torch.float64))
        return pad_sequence(rows, batch_first=True, padding_value=-1) if rows else torch.zeros(0, 5).double()

    def set_extra_state(self, state: Tensor) -> None:
        for number, (seen, _, heads, memories, between, *padded) in enumerate(state.tolist()):
            labels = [int(label) for label in padded if label >= 0]
            weights = None if heads < 0 else Weights(heads, memories, between)
            if number < len(self.portions):
                self.portions[number] = self.portions[number]._replace(weights=weights)
            elif seen < 0:
                self.add_portion(len(labels), labels)
            else:
                self.add_task(len(labels), labels, int(seen), weights)
        frozen = [row[1] for row in state.tolist() if row[0] >= 0]
        for memory, is_frozen in zip(self.memories(), frozen, strict=True):
            if is_frozen:
                memory.freeze()
