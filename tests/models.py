"""Models that were taught nothing, with all that is said of taught ones."""

from dataclasses import replace

import torch
from torch import Generator

from sparc.methods.sparc.settings import ChorusSettings
from sparc.model_file import LearnedTask, Model, ModelInfo
from sparc.model_input import InputShape
from sparc.nn.patches import PatchFeatures

INFO = ModelInfo(
    InputShape(3, (32, 32)),
    ChorusSettings(width=0.125, depth=2, alpha=0.9),
    mean=(0.5,) * 3,
    std=(0.25,) * 3,
    made_with="sparc 0.1.0",
    seed=3,
)


def learned_task(name: str, *classes: str, share: float = 0.5) -> LearnedTask:
    when = "2025-07-01T10:20:30+00:00"
    pictures = (7,) * len(classes)
    return LearnedTask(name, classes, pictures, 3, 91.25, 61.5, when, 9, 2.5, share, seen=sum(pictures))


def untaught(*tasks: LearnedTask, info: ModelInfo = INFO, seed: int = 0) -> Model:
    """A model that answers at random."""
    random = Generator().manual_seed(seed)
    net = info.new_net(random)
    if isinstance(net.common, PatchFeatures):
        net.common.draw(torch.rand(9, info.shape.channels, *info.shape.image_size, generator=random), random)
    info = replace(info, tasks=tasks)
    for task in tasks:
        assert task.seen is not None
        net.add_task(len(task.classes), info.labels(task), task.seen).freeze()
        labels = torch.tensor(info.labels(task)).repeat_interleave(torch.tensor(task.pictures))
        features = [torch.rand(len(labels), len(voice.shift), generator=random) for voice in net.all_voices()]
        net.add_statistics(features, labels)
    return Model(net.eval(), info)
