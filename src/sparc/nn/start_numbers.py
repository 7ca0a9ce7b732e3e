"""Numbers of a start's features, which the net and the graph that answers without torch share."""

from typing import Literal

from sparc.nn.described import Shrinkage

Start = Literal["nothing", "lite0"]
SIDE = 224
"""Pixels that pictures are brought to, which is what the net was trained with. On CIFAR-100 with 20 pictures a class,
54.9, 58.2 and 61.1 % of held-out pictures are right at 128, 160 and 224, for 8, 14 and 25 ms a picture."""
ROOT = 0.003
"""Added before the square root, which is too steep at 0."""
START_SHRINKAGE = Shrinkage(half_at=1.0, power=0.6)
"""With 100 classes of CIFAR-100 of 20 and 50 of 100 pictures, 60.1 and 76.1 % of held-out ones are right so, and 59.2
and 75.5 % with the usual one; level with 5 and 14 classes (two or four draws)."""
