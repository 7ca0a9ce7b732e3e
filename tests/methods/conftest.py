import pytest

from sparc.methods import METHODS, Method


@pytest.fixture(params=list(METHODS.classes))
def kind(request: pytest.FixtureRequest) -> type[Method]:
    return METHODS.find(request.param)
