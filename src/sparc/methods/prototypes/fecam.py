"""FeCAM: features of the first task's net for ever, and a covariance a class that says in which directions it spreads.

Goswami, Liu, Twardowski and van de Weijer, "FeCAM: Exploiting the Heterogeneity of Class Distributions in Exemplar-Free
Continual Learning", NeurIPS 2023. Square roots of features are described by a mean and a covariance a class, which is
shrunk twice and brought to a variance of 1 a feature. A picture is of the class to whose mean its Mahalanobis distance
is least, both of them brought to length 1. The authors raise the mean of features to the power, which is here the mean
of powers, answer by the head after the first task, and have stronger views of pictures (AutoAugment).
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from sparc.data.stream import Task
from sparc.errors import check_not_negative, check_positive
from sparc.methods.parts.densities import Directions
from sparc.methods.parts.first_task import FirstTaskNet
from sparc.methods.parts.prepared import Prepared
from sparc.methods.parts.single import SingleNetSettings
from sparc.methods.recipe import Recipe
from sparc.nn.gaussians import ClassGaussians, shrunk
from sparc.nn.head import CosineHead


@dataclass(frozen=True)
class FecamSettings(SingleNetSettings):
    tukey: float = 0.5
    """Power that features are raised to, so that they are spread more like a Gaussian; 1 leaves them as they are."""
    shrink: float = 1.0
    """How much of the mean variance is added to each variance, twice."""
    shrink_others: float = 1.0
    """How much of the mean covariance is added to each covariance of two features, twice."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("--tukey", self.tukey)
        check_positive("--shrink", self.shrink)
        check_not_negative("--shrink-others", self.shrink_others)


class FeCAM(FirstTaskNet, Prepared[Directions]):
    name = "fecam"
    title = "FeCAM"
    paper = "Goswami et al., NeurIPS 2023"
    Settings = FecamSettings
    recipe = Recipe(epochs=200, batch_size=128, lr=0.1, momentum=0.9, weight_decay=5e-4, schedule="cosine")
    settings: FecamSettings

    def __init__(self, settings: FecamSettings, *rest: Any) -> None:
        super().__init__(settings, *rest)
        features = self.net.head.in_features
        self.net.head = CosineHead(features, 0, self.generator)
        self.gaussians = ClassGaussians(features, tied=False)

    def end_task(self, task: Task) -> None:
        self.gaussians.add(
            self.tukey(self.features_of(self.net.features, task.train)), task.train.labels.to(self.device)
        )

    def tukey(self, features: Tensor) -> Tensor:
        """Tukey's ladder of powers."""
        return features.double().clamp_min(0) ** self.settings.tukey

    def prepare(self) -> Directions:
        shares = (self.settings.shrink, self.settings.shrink_others)
        return Directions.of(self.gaussians.means, shrunk(self.gaussians.covariances(*shares), *shares))

    def logits(self, images: Tensor) -> Tensor:
        return -self.ready().distances(self.tukey(self.net.features(images))).float()
