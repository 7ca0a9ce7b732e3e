"""What learns: SPARC's growing net, and the nets of its rivals."""

from typing import TYPE_CHECKING

from sparc.lazy import lazily

if TYPE_CHECKING:
    from sparc.nn.backbone import Backbone, SeparableNet, new_backbone
    from sparc.nn.growing import GrowingNet
    from sparc.nn.layout import ParameterCounts
    from sparc.nn.resnet import ResNet
    from sparc.nn.sparc import SemanticMemory, SparcNet, WorkingMemory

__all__ = [
    "Backbone",
    "GrowingNet",
    "ParameterCounts",
    "ResNet",
    "SemanticMemory",
    "SeparableNet",
    "SparcNet",
    "WorkingMemory",
    "new_backbone",
]

__getattr__ = lazily(
    __name__,
    {
        **dict.fromkeys(("Backbone", "SeparableNet", "new_backbone"), "backbone"),
        "GrowingNet": "growing",
        "ResNet": "resnet",
        "ParameterCounts": "layout",
        **dict.fromkeys(("SemanticMemory", "SparcNet", "WorkingMemory"), "sparc"),
    },
)
