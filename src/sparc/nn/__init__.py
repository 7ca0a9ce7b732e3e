"""What learns: SPARC's growing net and the field's ResNet."""

from sparc.nn.resnet import ResNet
from sparc.nn.sparc import ParameterCounts, SemanticMemory, SparcNet, WorkingMemory

__all__ = ["ParameterCounts", "ResNet", "SemanticMemory", "SparcNet", "WorkingMemory"]
