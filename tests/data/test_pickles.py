import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparc.data import pickles
from sparc.errors import InputError

TABLE = np.arange(12, dtype=np.uint8).reshape(4, 3)
# What Python 2 with numpy 1 wrote for {"data": array([[1, 2]], uint8), "labels": [3], "names": ["ab"]}.
PYTHON_2 = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85q\x05U\x01b"
    b"q\x06\x87q\x07Rq\x08(K\x01K\x01K\x02\x86q\x09cnumpy\ndtype\nq\nU\x02u1q\x0bK\x00K\x01\x87q\x0cRq\r(K\x03U\x01|q\x0e"
    b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x0fb\x89U\x02\x01\x02q\x10tq\x11bU\x06labelsq\x12]q\x13K\x03a"
    b"U\x05namesq\x14]q\x15U\x02abq\x16au."
)


class Calls:
    def __init__(self, function: object, *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call


def test_what_python_2_wrote():
    content = pickles.load(PYTHON_2, "x")
    assert pickles.array(content[b"data"], "x").tolist() == [[1, 2]]
    assert content[b"labels"] == [3]
    assert content[b"names"] == [b"ab"]


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("table", [TABLE, np.asfortranarray(TABLE)], ids=["rows", "columns"])
def test_what_python_3_writes(protocol, table):
    content = pickles.load(pickle.dumps({b"data": table, b"labels": [1, 2], b"n": [b"\xe9"]}, protocol), "x")
    assert np.array_equal(pickles.array(content[b"data"], "x"), TABLE)
    assert content[b"labels"] == [1, 2]
    assert content[b"n"] == [b"\xe9"]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("function", [os.system, eval, exec, getattr, np.load])
def test_nothing_is_run(tmp_path, function, protocol):
    trap = tmp_path / "sprung"
    command = f"touch {trap}" if function is os.system else f"open({str(trap)!r}, 'w')"
    attack = pickle.dumps({b"data": Calls(function, command)}, protocol)
    with pytest.raises(InputError, match=r"bad\.pkl is not a pickle of arrays \(.*: fetch the set again"):
        pickles.load(attack, "bad.pkl")
    assert not trap.exists()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(b"\x80\x02c__builtin__\neval\n(S'1'\ntR.", id="eval by its old name"),
        pytest.param(b"\x80\x02cnumpy\nload\n.", id="another name of numpy"),
        pytest.param(b"\x80\x02cnumpy.core.multiarray\nscalar\n.", id="another name of its core"),
        pytest.param(b"\x80\x02\x82\x01.", id="extension registry"),
        pytest.param(b"\x80\x02Pid\n.", id="persistent id"),
        pytest.param(b"\x80\x02K\x01Q.", id="binary persistent id"),
        pytest.param(b"(ios\nsystem\n.", id="INST"),
        pytest.param(b"\x80\x02(cnumpy\nndarray\no.", id="OBJ"),
        pytest.param(b"\x80\x02cnumpy\nndarray\n)\x81.", id="NEWOBJ"),
        pytest.param(b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b".", id="a bytearray of a terabyte"),
        pytest.param(b"\x80\x02U\x01aR.", id="a call of bytes"),
        pytest.param(b"\x80\x02}}U\x01aK\x01sb.", id="a dictionary built"),
        pytest.param(b"\x80\x02]\x8a\xffa.", id="cut off"),
        pytest.param(b"\x80\x02]q\x00.", id="no dictionary"),
        pytest.param(b"I" + b"9" * 10_000 + b"\n.", id="a number of ten thousand digits"),
        pytest.param(b"\x80\x02h\x05.", id="an index that the memo does not have"),
        pytest.param(b"", id="empty"),
    ],
)
def test_what_arrays_do_not_need_is_refused(program):
    with pytest.raises(InputError, match="bad is not a pickle of arrays"):
        pickles.load(program, "bad")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(b"\x80\x02}r\xff\xff\xff\x7f.", id="memo index"),
        pytest.param(b"\x80\x02}p999999999999\n.", id="memo index in text"),
        pytest.param(b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"a.", id="length of bytes"),
        pytest.param(b"\x80\x02T\xff\xff\xff\x7fa.", id="length of a string"),
        pytest.param(b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}.", id="length of a frame"),
    ],
)
def test_a_forged_length_uses_no_memory(program):
    tracemalloc.start()
    with suppress(InputError):
        assert pickles.load(program, "bad") == {}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_a_deep_key_does_not_overflow_the_stack():
    """In a process of its own, which a deep key would end; of one item, of some, and in a new dictionary."""
    programs = [b"}%sK\x01s.", b"}(%sK\x01u.", b"(%sK\x01d."]
    script = f"""
from sparc.data import pickles
from sparc.errors import InputError
deep = b")" + b"\\x85" * 300_000
for program in {programs!r}:
    try:
        pickles.load(b"\\x80\\x02" + program % deep, "bad")
    except InputError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    sentence = "bad is not a pickle of arrays (a dictionary in it has keys other than texts and numbers)"
    assert done.stdout.count(sentence) == len(programs)


def test_one_text_encoded_again_and_again_is_refused():
    text = b"X" + struct.pack("<I", 2**20) + b"a" * 2**20 + b"q\x00"
    program = b"\x80\x02](c_codecs\nencode\nq\x01" + text + b"X\x06\x00\x00\x00latin1q\x02\x86R"
    again = b"h\x01h\x00h\x02\x86R"
    tracemalloc.start()
    with pytest.raises(InputError, match="more text"):
        pickles.load(program + again * 1000 + b"e.", "bad")
    assert tracemalloc.get_traced_memory()[1] < 600 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "value",
    [
        TABLE.astype(np.float32),
        TABLE.astype(np.int8),
        TABLE.ravel(),
        TABLE[None],
        np.array([[None]]),
        [1, 2],
        None,
        b"bytes",
    ],
    ids=str,
)
def test_only_tables_of_bytes_come_out(value):
    content = pickles.load(pickle.dumps({b"data": value}, 2), "x")
    with pytest.raises(InputError, match="no table of bytes"):
        pickles.array(content[b"data"], "x")


@settings(max_examples=200)
@given(
    seed=st.sampled_from([PYTHON_2, pickle.dumps({b"data": TABLE, b"l": [1]}, 2)]),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=5),
)
def test_broken_bytes_raise_nothing_but_input_errors(seed, changes):
    content = bytearray(seed)
    for index, value in changes:
        content[index % len(content)] = value
    with suppress(InputError):
        pickles.array(pickles.load(bytes(content), "x").get(b"data"), "x")
