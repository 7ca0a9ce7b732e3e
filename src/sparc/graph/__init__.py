"""A model as ONNX graphs, written by hand with numpy: the few operators that it needs, and nothing an exporter adds."""

STACK = 10
"""Working memories side by side, at the most: a map of all of them has to be held at once."""
