"""The supervised contrastive loss: pictures of a class are drawn together, and away from all others.

Khosla et al., "Supervised Contrastive Learning", NeurIPS 2020.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def supervised_contrastive(
    features: Tensor, labels: Tensor, temperature: float, anchors: Tensor | None = None
) -> Tensor:
    """The loss of feature vectors [N, D], several of a picture or of a class; they are normalized here.

    With `anchors`, a mask of N, only those are drawn to others of their class; the rest only push away.

    >>> views = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(supervised_contrastive(views, torch.tensor([0, 0, 1, 1]), temperature=1.0).item(), 4)
    0.5514
    """
    unit = normalize(features, dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    similarity = (unit @ unit.T / temperature).masked_fill(itself, -torch.inf)
    alike = (labels[:, None] == labels) & ~itself
    shares = similarity.log_softmax(1).masked_fill(~alike, 0)
    chosen = alike.any(1) if anchors is None else alike.any(1) & anchors
    each = -shares.sum(1) / alike.sum(1).clamp_min(1)
    return each[chosen].mean() if chosen.any() else features.sum() * 0
