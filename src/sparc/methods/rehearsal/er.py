"""Experience replay: every batch is joined by as many pictures from a reservoir of old ones.

Riemer et al., "Learning to Learn without Forgetting by Maximizing Transfer and Minimizing Interference", ICLR 2019;
Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019. New and old go through the net as one batch.
"""

import torch
from torch import Tensor

from sparc.methods.method import Batch
from sparc.methods.parts.rehearsal import Rehearsal
from sparc.methods.recipe import Recipe


class ER(Rehearsal):
    name = "er"
    title = "ER"
    paper = "Riemer et al., ICLR 2019"
    recipe = Recipe(lr=0.1)

    def loss(self, batch: Batch) -> Tensor:
        images, labels = batch.images, batch.labels
        if len(self.buffer):
            old_images, old_labels, _ = self.replay()
            images, labels = torch.cat((images, old_images)), torch.cat((labels, old_labels))
        self.buffer.add(batch.raw_images, batch.labels)
        return batch.cross_entropy(self.net(images), labels)
