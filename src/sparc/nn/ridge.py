"""Ridge regression onto the classes, from sums that are gathered a batch at a time, without keeping a picture."""

import torch
from torch import Tensor

from sparc.nn.resizable_buffers import ResizableBuffers

CHUNK = 1024
"""Pictures whose features are in double precision at a time."""


class RunningRidge(ResizableBuffers):
    """Sums over pictures from which the linear map with the least squared error follows: it makes no difference in
    which order, or in how many portions, they were taken in.

    >>> ridge = RunningRidge(features=2)
    >>> ridge.add(torch.eye(2), torch.tensor([1, 0]))
    >>> ridge.weight(0.0).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    products: Tensor
    """[D, D], of features with each other."""
    sums: Tensor
    """[C, D], of each class's features."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("products", torch.zeros(features, features, dtype=torch.float64))
        self.register_buffer("sums", torch.zeros(0, features, dtype=torch.float64))

    def add(self, features: Tensor, labels: Tensor) -> None:
        """Take in some pictures' features, [N, D], of any classes."""
        missing = int(labels.max()) + 1 - len(self.sums)
        if missing > 0:
            self.sums = torch.cat((self.sums, self.sums.new_zeros(missing, self.sums.shape[1])))
        for chunk, own in zip(features.split(CHUNK), labels.split(CHUNK), strict=True):
            chunk = chunk.double()
            self.products.addmm_(chunk.T, chunk)
            self.sums.index_add_(0, own.to(chunk.device), chunk)

    def weight(self, share: float) -> Tensor:
        """[C, D], to 1 for a picture's class and 0 for all others, with a penalty of so much of the features' mean
        square on each weight's.
        """
        penalty = share * self.products.diagonal().mean()
        root = torch.linalg.cholesky(self.products + penalty * torch.eye(len(self.products)).to(self.products))
        return torch.cholesky_solve(self.sums.T, root).T
