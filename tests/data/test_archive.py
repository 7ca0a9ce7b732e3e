import gzip
import io
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparc.data import archive
from sparc.errors import InputError

KINDS = ["folder", "set.zip", "set.tar", "set.tar.gz"]
FILES = {"b.txt": b"b", "a/c.txt": b"", "a-b/x": b"x" * 70_000, "a/ü/日本.bin": bytes(range(256)) * 2}


def every(_: str) -> bool:
    return True


parts = st.text("abö-._ ", min_size=1, max_size=4).filter(lambda part: part.strip(". ") == part)
files = st.dictionaries(
    st.lists(parts, min_size=1, max_size=3).map(tuple), st.binary(max_size=2000), max_size=6
).filter(lambda files: not any(a != b and a == b[: len(a)] for a in files for b in files))


@settings(max_examples=25)
@given(files=files)
def test_a_folder_a_zip_and_a_tar_give_the_same(pack, files):
    wanted = {"/".join(name): content for name, content in sorted(files.items())}
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = pack(Path(folder) / kind, wanted)
            assert list(archive.walk(path, every)) == list(wanted.items())


@pytest.mark.parametrize("kind", KINDS)
def test_only_wanted_files_come_out(pack, tmp_path, kind):
    path = pack(tmp_path / kind, FILES)
    assert dict(archive.walk(path, lambda name: name.endswith(".txt"))) == {"b.txt": b"b", "a/c.txt": b""}


@pytest.mark.parametrize("kind", ["folder", "set.zip"])
def test_names_stand_in_the_order_of_the_walk(pack, tmp_path, kind):
    path = pack(tmp_path / kind, FILES)
    assert archive.names(path, every) == [name for name, _ in archive.walk(path, every)]
    assert [name for name, _ in archive.read(path, ["b.txt", "a/c.txt"])] == ["b.txt", "a/c.txt"]


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.8])
def test_a_cut_off_archive_is_named(pack, tmp_path, kind, kept):
    path = pack(tmp_path / kind, {"a": os.urandom(40_000), "b": os.urandom(40_000)})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * kept)])
    with pytest.raises(InputError, match=f"{path.name}.* cannot be read .*: fetch it again"):
        list(archive.walk(path, every))


def test_a_tar_cut_off_between_two_files_is_named(pack, tmp_path):
    path = pack(tmp_path / "set.tar", {"a": b"a", "b": b"b"})
    path.write_bytes(path.read_bytes()[:1024])
    with pytest.raises(InputError, match=r"set\.tar cannot be read \(it ends too early\)"):
        list(archive.walk(path, every))


@pytest.mark.parametrize("kind", ["set.zip", "set.tar.gz"])
def test_a_flipped_bit_is_noticed(pack, tmp_path, kind):
    path = pack(tmp_path / kind, {"a": os.urandom(40_000)})
    content = bytearray(path.read_bytes())
    content[20_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        list(archive.walk(path, every))


@pytest.fixture(scope="module")
def packed(pack, tmp_path_factory) -> dict[Path, bytes]:
    """The archives of every kind, and what they hold while they are whole."""
    folder = tmp_path_factory.mktemp("packed")
    return {path: path.read_bytes() for path in (pack(folder / kind, FILES) for kind in KINDS[1:])}


@settings(max_examples=150)
@given(
    kind=st.integers(0, len(KINDS) - 2),
    changes=st.lists(st.tuples(st.integers(-1999, 0), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_broken_bytes_raise_nothing_but_input_errors(packed, kind, changes):
    path, whole = list(packed.items())[kind]
    content = bytearray(whole)
    for index, value in changes:
        content[max(index, -len(content))] = value
    path.write_bytes(content)
    with suppress(InputError):
        list(archive.walk(path, every))


def test_links_in_archives_are_passed_over(tmp_path):
    with tarfile.open(tmp_path / "set.tar", "w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("real"))
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as packed:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
        packed.writestr("real", b"")
    assert list(archive.walk(tmp_path / "set.tar", every)) == [("real", b"")]
    assert list(archive.walk(tmp_path / "set.zip", every)) == [("real", b"")]


def test_links_in_folders_are_followed_but_not_in_a_circle(pack, tmp_path):
    pack(tmp_path / "elsewhere", {"1.png": b"1"})
    folder = pack(tmp_path / "folder", {"a/x": b"x"})
    (folder / "cats").symlink_to(tmp_path / "elsewhere")
    (folder / "a" / "up").symlink_to(folder)
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    assert dict(archive.walk(folder, every)) == {"a/x": b"x", "cats/1.png": b"1"}


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [("LARGEST", 10, "larger than"), ("TOTAL", 60_000, "unpacks to more"), ("MEMBERS", 3, "more than 3 files")],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold(pack, tmp_path, monkeypatch, kind, limit, value, message):
    path = pack(tmp_path / kind, FILES)
    monkeypatch.setattr(archive, limit, value)
    if kind == "folder" and limit == "TOTAL":
        assert len(list(archive.walk(path, every))) == 4
        return
    with pytest.raises(InputError, match=f"{message}|claims"):
        list(archive.walk(path, every))


def test_a_tar_header_that_claims_gigabytes_is_refused_unread(tmp_path):
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 3 * 2**30
    (tmp_path / "set.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(InputError, match="claims 3221225472 bytes"):
        list(archive.walk(tmp_path / "set.tar", every))


def test_a_gzip_that_goes_on_after_the_tar_is_read_to_its_check_sum(pack, tmp_path):
    plain = pack(tmp_path / "set.tar", {"a": b"a"}).read_bytes()
    packed = bytearray(gzip.compress(plain + bytes(5000)))
    packed[-6] ^= 1
    (tmp_path / "set.tar.gz").write_bytes(packed)
    with pytest.raises(InputError, match="CRC"):
        list(archive.walk(tmp_path / "set.tar.gz", every))


def test_an_encrypted_zip_is_refused(pack, tmp_path):
    path = pack(tmp_path / "set.zip", {"a": b"secret"})
    content = path.read_bytes()
    central = content.rindex(b"PK\x01\x02")
    path.write_bytes(content[: central + 8] + struct.pack("<H", 1) + content[central + 10 :])
    with pytest.raises(InputError, match="encrypted"):
        list(archive.walk(path, every))


def test_a_file_that_is_gone_is_named(tmp_path):
    (tmp_path / "there").write_bytes(b"")
    with pytest.raises(InputError, match=r"gone.*No such file"):
        list(archive.read(tmp_path, ["gone"]))
    with pytest.raises(InputError, match=r"gone\.tar.*No such file"):
        list(archive.walk(tmp_path / "gone.tar", every))


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_that_changes_while_it_is_read_is_named(pack, tmp_path, kind):
    path = pack(tmp_path / kind, {"a": b"a"})
    with pytest.raises(InputError, match=rf"{kind}.*(No such file|any more)"):
        list(archive.read(path, ["a", "gone"]))


def test_a_fifo_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert list(archive.walk(tmp_path, every)) == []


def test_walk_reads_a_tar_as_a_stream(tmp_path):
    """The first member is there before the broken end is met."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("a", "b"):
            member = tarfile.TarInfo(name)
            member.size = 20_000
            tar.addfile(member, io.BytesIO(bytes(20_000)))
    (tmp_path / "set.tar").write_bytes(buffer.getvalue()[:30_000])
    stream = archive.walk(tmp_path / "set.tar", every)
    assert next(stream)[0] == "a"
    with pytest.raises(InputError):
        next(stream)


def test_a_damaged_lzma_member_is_named(tmp_path):
    path = tmp_path / "set.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("a", bytes(range(256)) * 100)
    content = bytearray(path.read_bytes())
    content[60:200] = b"\xff" * 140
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"set\.zip:a cannot be read"):
        list(archive.walk(path, every))


@pytest.mark.parametrize(
    "headers",
    [
        {"GNU.sparse.size": "x"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"},
        {"GNU.sparse.map": "0,x"},
        {"size": "-5"},
        {"GNU.sparse.realsize": "-5", "GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
        {"GNU.sparse.map": "0,1", "GNU.sparse.size": "-5"},
    ],
    ids=str,
)
def test_nonsense_in_an_extended_tar_header_is_named(tmp_path, headers):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("a")
        member.pax_headers, member.size = headers, 2000
        tar.addfile(member, io.BytesIO(b"1\nx\n" + bytes(1996)))
        tar.addfile(tarfile.TarInfo("b"))
    (tmp_path / "set.tar").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match=r"set\.tar cannot be read \(.*: fetch it again, or remove it$"):
        list(archive.walk(tmp_path / "set.tar", every))


def test_what_a_bound_says_is_not_said_twice(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MEMBERS", 3)
    with pytest.raises(InputError) as caught:
        list(archive.walk(pack(tmp_path / "set.tar", FILES), every))
    assert "cannot be read" not in str(caught.value)
