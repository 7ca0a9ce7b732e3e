"""Pictures and labels out of parquet files, in the way Hugging Face stores them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

from sparc.data.archive import MEMBERS, unreadable
from sparc.data.imageset import ImageSet, Splits
from sparc.data.pictures import decode_all
from sparc.data.progress import Progress
from sparc.errors import InputError


@dataclass(frozen=True)
class Copies:
    """How a set is stored on Hugging Face: its folders, its columns and the size of its pictures."""

    folders: tuple[str, ...]
    """Where its several copies keep their files, below the set's own folder."""
    picture: str
    """The column of pictures."""
    label: str
    """The column of labels."""
    test: str
    """What the names of its test files begin with."""
    size: int


@dataclass(frozen=True)
class Part:
    """What the headers of the files with the training or the test pictures say."""

    copies: Copies
    shards: list[Path]
    names: tuple[str, ...]
    rows: int


class OtherSetError(InputError):
    """The files can be read, but they are of another set, or of a part of this one."""


def find(root: Path, copies: Copies, classes: int, *, own: bool) -> list[Part] | None:
    """The training and the test part, or None if no parquet file of the set lies in `root`.

    Files of another set are an error in a folder that is the set's `own`; elsewhere sets lie side by side.
    """
    for folder in (root / name for name in copies.folders):
        train, test = (sorted(folder.glob(f"{part}*.parquet")) for part in ("train", copies.test))
        if not train and not test:
            continue
        try:
            if not train or not test:
                there, missing = (train or test)[0].name, copies.test if train else "train"
                raise OtherSetError(f"{folder} holds {there} but no {missing}*.parquet: fetch that as well")
            return [_part(shards, copies, classes) for shards in (train, test)]
        except OtherSetError:
            if own:
                raise
    return None


def _part(shards: list[Path], copies: Copies, classes: int) -> Part:
    names = _class_names(shards[0], copies.label)
    if len(names) != classes:
        raise OtherSetError(
            f"{shards[0]} names {len(names)} classes where there should be {classes}: put the files of another set "
            f"elsewhere"
        )
    rows = sum(_rows(shard, copies) for shard in shards)
    if rows > MEMBERS:
        raise InputError(f"{shards[0]} and its like claim {rows:,} rows, more than {MEMBERS:,}: fetch them again")
    return Part(copies, shards, names, rows)


def read(parts: list[Part], progress: Progress) -> Splits:
    """The pictures of the parts that were found."""
    return Splits(*(_read(part, progress) for part in parts))


def _read(part: Part, progress: Progress) -> ImageSet:
    labels = np.empty(part.rows, dtype=np.int64)
    images = decode_all(_pictures(part, labels), part.rows, part.copies.size, progress, fit=None)
    if part.rows and not 0 <= labels.min() <= labels.max() < len(part.names):
        raise InputError(
            f"{part.shards[0].parent}: labels run from {labels.min()} to {labels.max()} where {len(part.names)} "
            f"classes are named in {part.shards[0].name}: fetch the set again"
        )
    return ImageSet(torch.from_numpy(images), torch.from_numpy(labels), part.names)


def _class_names(shard: Path, label: str) -> tuple[str, ...]:
    try:
        notes = json.loads(pq.read_schema(shard).metadata[b"huggingface"])
        return tuple(str(name) for name in notes["info"]["features"][label]["names"])
    except (pa.ArrowException, OSError) as error:
        raise unreadable(shard, error) from error
    except (LookupError, TypeError, ValueError) as error:
        raise OtherSetError(
            f"{shard} does not name the classes of its column “{label}” in its schema's huggingface metadata: fetch "
            f"the set again from Hugging Face"
        ) from error


def _rows(shard: Path, copies: Copies) -> int:
    try:
        with pq.ParquetFile(shard) as file:
            schema, rows = file.schema_arrow, int(file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(shard, error) from error
    types = dict(zip(schema.names, schema.types, strict=True))
    picture, label = types.get(copies.picture, pa.null()), types.get(copies.label, pa.null())
    contents = {field.name: field.type for field in picture} if pa.types.is_struct(picture) else {}
    if not pa.types.is_binary(contents.get("bytes", pa.null())) or not pa.types.is_integer(label):
        raise OtherSetError(
            f"{shard} has the columns {', '.join(types)}, not “{copies.picture}” with pictures and “{copies.label}” "
            f"with whole numbers: put the files of another set elsewhere"
        )
    return rows


def _pictures(part: Part, labels: NDArray[np.int64]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every picture; `labels` is filled on the way, so that a file is read only once."""
    copies, row = part.copies, 0
    for shard in part.shards:
        start = row
        try:
            with pq.ParquetFile(shard) as file:
                for batch in file.iter_batches(512, columns=[f"{copies.picture}.bytes", copies.label]):
                    contents, label = batch.column(copies.picture).field("bytes"), batch.column(copies.label)
                    if contents.null_count or label.null_count:
                        raise InputError(f"{shard} has rows without a picture or a label: fetch it again")
                    labels[row : row + len(batch)] = label.to_numpy(zero_copy_only=False)
                    for content in contents.to_pylist():
                        yield f"{shard}, row {row - start},", content
                        row += 1
        except (pa.ArrowException, OSError) as error:
            raise unreadable(shard, error) from error
