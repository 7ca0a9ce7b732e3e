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

_FOLDERS = ("", "data", "cifar10", "cifar100", "plain_text")
"""Where below a set's folder its parquet files lie, by its several copies on Hugging Face."""


@dataclass(frozen=True)
class Columns:
    """What a set calls its columns and, at their beginning, its test files; and how large its pictures are."""

    picture: str
    label: str
    test: str
    size: int


def read(place: Path, columns: Columns, progress: Progress) -> Splits | None:
    """Both parts of a set, or nothing if no parquet file of it lies in `place`."""
    for folder in (place / name for name in _FOLDERS):
        train = sorted(folder.glob("train*.parquet"))
        test = sorted(folder.glob(f"{columns.test}*.parquet"))
        if train and test:
            return Splits(_part(train, columns, progress), _part(test, columns, progress))
        if train or test:
            missing = columns.test if train else "train"
            raise InputError(f"{folder} holds {(train or test)[0].name} but no {missing}*.parquet: fetch that as well.")
    return None


def _part(shards: list[Path], columns: Columns, progress: Progress) -> ImageSet:
    names = _class_names(shards[0], columns.label)
    count = sum(_rows(shard, columns) for shard in shards)
    if count > MEMBERS:
        raise InputError(f"{shards[0]} and its like claim {count:,} rows, more than {MEMBERS:,}: fetch them again.")
    labels = np.empty(count, dtype=np.int64)
    images = decode_all(_pictures(shards, columns, labels), count, columns.size, progress, resize=False)
    if count and not 0 <= labels.min() <= labels.max() < len(names):
        raise InputError(
            f"{shards[0].parent}: labels run from {labels.min()} to {labels.max()} where {len(names)} classes are "
            f"named in {shards[0].name}: fetch the set again."
        )
    return ImageSet(images, torch.from_numpy(labels), names)


def _class_names(shard: Path, label: str) -> tuple[str, ...]:
    try:
        notes = json.loads(pq.read_schema(shard).metadata[b"huggingface"])
        return tuple(str(name) for name in notes["info"]["features"][label]["names"])
    except (pa.ArrowException, OSError) as error:
        raise unreadable(shard, error) from error
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{shard} does not name the classes of its column “{label}” in its schema's huggingface metadata: fetch "
            f"the set again from Hugging Face."
        ) from error


def _rows(shard: Path, columns: Columns) -> int:
    try:
        with pq.ParquetFile(shard) as file:
            schema, rows = file.schema_arrow, int(file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(shard, error) from error
    types = dict(zip(schema.names, schema.types, strict=True))
    picture, label = types.get(columns.picture, pa.null()), types.get(columns.label, pa.null())
    contents = {field.name: field.type for field in picture} if pa.types.is_struct(picture) else {}
    if not pa.types.is_binary(contents.get("bytes", pa.null())) or not pa.types.is_integer(label):
        raise InputError(
            f"{shard} has the columns {', '.join(types)}, not “{columns.picture}” with pictures and “{columns.label}” "
            f"with whole numbers: put the files of another set elsewhere."
        )
    return rows


def _pictures(shards: list[Path], columns: Columns, labels: NDArray[np.int64]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every picture; `labels` is filled on the way, so that a file is read only once."""
    row = 0
    for shard in shards:
        start = row
        try:
            with pq.ParquetFile(shard) as file:
                for batch in file.iter_batches(512, columns=[f"{columns.picture}.bytes", columns.label]):
                    contents, label = batch.column(columns.picture).field("bytes"), batch.column(columns.label)
                    if contents.null_count or label.null_count:
                        raise InputError(f"{shard} has rows without a picture or a label: fetch it again.")
                    labels[row : row + len(batch)] = label.to_numpy(zero_copy_only=False)
                    for content in contents.to_pylist():
                        yield f"{shard}, row {row - start},", content
                        row += 1
        except (pa.ArrowException, OSError) as error:
            raise unreadable(shard, error) from error
