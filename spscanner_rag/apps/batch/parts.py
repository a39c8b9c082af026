"""Parts: the files that the records of a chunk are written to, Parquet or JSONL."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from spscanner_rag.apps.batch.scanning import Record
from spscanner_rag.checkpoint.whole_file import whole_file

Form = Literal["parquet", "jsonl"]


def default_form() -> Form:
    """Parquet where pyarrow is installed, else JSONL."""
    return "parquet" if find_spec("pyarrow") else "jsonl"


def part_path(folder: Path, number: int, form: Form) -> Path:
    """The file of a chunk."""
    return folder / f"part-{number:06d}.{form}"


def finished(folder: Path, count: int, form: Form) -> set[int]:
    """Numbers of the chunks, of ``count``, whose part is in the folder: a part is there only if it is whole."""
    names = {path.name for path in folder.glob(f"part-*.{form}")}
    return {number for number in range(count) if part_path(folder, number, form).name in names}


def write_part(folder: Path, number: int, form: Form, content: bytes) -> None:
    """Write a part whole or not at all."""
    with whole_file(part_path(folder, number, form)) as unfinished:
        unfinished.write_bytes(content)


def encoded(records: Sequence[Record], form: Form) -> bytes:
    """The content of a part."""
    if form == "jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode("ascii")
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(records), schema()), file, compression="zstd")
    return file.getvalue()


def schema() -> Any:  # noqa: ANN401 - pyarrow's
    """The columns of a Parquet part, the same in every part."""
    import pyarrow as pa

    sentence = {
        "start": pa.int64(),
        "end": pa.int64(),
        "score": pa.float32(),
        "logit": pa.float32(),
        "text": pa.string(),
        "section": pa.string(),
    }
    return pa.schema(
        {
            "id": pa.string(),
            "query_id": pa.string(),
            "document_score": pa.float32(),
            "sentence_count": pa.int64(),
            "tokens": pa.int64(),
            "sentences": pa.list_(pa.struct(list(sentence.items()))),
            "error": pa.string(),
        }
    )
