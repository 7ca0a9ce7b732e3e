"""Nodes and weights of an ONNX graph in the making."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparc import __version__

OPSET, IR_VERSION = 17, 8
"""Of 2022: what runtimes of the last years read."""
Shape = Sequence[str | int]
Body = Any
"""A branch, as onnx has it."""


class Graph:
    """Every node has one output, which has its name."""

    def __init__(self, prefix: str = "") -> None:
        """All its names begin with the prefix. ImportError where there is no onnx."""
        self.onnx = import_module("onnx")
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.names: set[str] = set()

    def weight(self, name: str, value: ArrayLike) -> str:
        """Floats are kept in single precision."""
        array, name = np.asarray(value), self.prefix + name
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        self.names.add(name)
        self.weights.append(self.onnx.numpy_helper.from_array(array.copy(), name))
        return name

    def constant(self, name: str, value: ArrayLike) -> str:
        """A number, or some, that several nodes may share."""
        return self.prefix + name if self.prefix + name in self.names else self.weight(name, value)

    def node(self, name: str, operator: str, *inputs: str, **attributes: Any) -> str:
        name = self.prefix + name
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def either(self, name: str, condition: str, then: Body, otherwise: Body) -> str:
        """What one of two branches ends with; the other is not computed."""
        return self.node(name, "If", condition, then_branch=then, else_branch=otherwise)

    def body(self, end: str) -> Body:
        """Its nodes as a branch of another graph, whose nodes they may take in."""
        kind = self.onnx.helper.make_tensor_value_info(end, self.onnx.TensorProto.FLOAT, None)
        return self.onnx.helper.make_graph(self.nodes, self.prefix, [], [kind], self.weights)

    def linear(self, name: str, x: str, weight: NDArray[Any], bias: NDArray[Any]) -> str:
        kept = self.weight(f"{name}.weight", weight), self.weight(f"{name}.bias", bias)
        return self.node(name, "Gemm", x, *kept, transB=1)

    def scaled(self, name: str, x: str, factor: float) -> str:
        return self.node(name, "Mul", x, self.weight(f"{name}.factor", factor))

    def shifted(self, name: str, x: str, shift: float) -> str:
        return self.node(name, "Add", x, self.weight(f"{name}.shift", shift))

    def reshaped(self, name: str, x: str, *shape: int) -> str:
        return self.node(name, "Reshape", x, self.weight(f"{name}.shape", np.array(shape)))

    def summed(self, name: str, x: str, axis: int, keepdims: bool = False) -> str:
        return self.node(name, "ReduceSum", x, self.constant(f"axis{axis}", np.array([axis])), keepdims=int(keepdims))

    def model(
        self,
        inputs: Mapping[str, tuple[type[np.generic], Shape]],
        outputs: Mapping[str, Shape],
        facts: Mapping[str, str] | None = None,
    ) -> Any:
        """The whole graph, with what is to be known of it."""
        helper, tensor = self.onnx.helper, self.onnx.helper.make_tensor_value_info
        made = helper.make_model(
            helper.make_graph(
                self.nodes,
                "sparc",
                [
                    tensor(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
                    for name, (kind, shape) in inputs.items()
                ],
                [tensor(name, self.onnx.TensorProto.FLOAT, shape) for name, shape in outputs.items()],
                self.weights,
            ),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="sparc",
            producer_version=__version__,
        )
        helper.set_model_props(made, dict(facts or {}))
        return made
