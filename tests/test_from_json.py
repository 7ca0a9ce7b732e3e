import contextlib
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparc.from_json import build


@dataclass(frozen=True)
class Inner:
    name: str
    pair: tuple[int, int] = (1, 2)


@dataclass(frozen=True)
class Outer:
    real: float
    maybe: float | None
    parts: tuple[Inner, ...]
    flag: bool = False


def test_what_asdict_takes_apart_is_put_together_again() -> None:
    whole = Outer(1.5, None, (Inner("a"), Inner("b", (3, 4))), flag=True)
    plain = {**asdict(whole), "parts": [{"name": "a", "pair": [1, 2]}, {"name": "b", "pair": [3, 4]}]}
    assert build(Outer, plain) == whole


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"real": "1"}, "real should be a number"),
        ({"real": True}, "real should be a number"),
        ({"real": float("nan")}, "real should be a finite number"),
        ({"real": 10**400}, "real should be a finite number"),
        ({"maybe": []}, "maybe should be a number"),
        ({"parts": {}}, "parts should be a list"),
        ({"parts": [3]}, "parts should be an object"),
        ({"parts": [{}]}, "name is missing"),
        ({"parts": [{"name": 3}]}, "name should be text"),
        ({"parts": [{"name": "a", "pair": [1]}]}, "pair should be a list of 2"),
        ({"parts": [{"name": "a", "pair": [1, 2.5]}]}, "pair should be a whole number"),
        ({"parts": [{"name": "a", "pair": [True, 2]}]}, "pair should be a whole number"),
        ({"flag": 1}, "flag should be"),
        ({"other": 1}, "'other' is not known"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        build(Outer, {"real": 1.0, "maybe": None, "parts": [], **change})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["real", "name", "parts"]), inner),
    max_leaves=8,
)


@given(anything)
def test_anything_else_is_a_value_error(value: object) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(build(Outer, value), Outer)
