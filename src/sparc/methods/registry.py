"""The methods, each found by its file's being here."""

from sparc.discovery import Registry
from sparc.methods.method import Method

METHODS: Registry[Method] = Registry("sparc.methods", Method, "method")  # type: ignore[type-abstract]
