"""Encodes the records of a part as Parquet or JSON lines."""

import io
import json
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal

from spscanner_rag.apps.batch.scanning import COLUMNS, Record

PartForm = Literal["parquet", "jsonl"]


def default_form() -> PartForm:
    """Return Parquet if pyarrow is installed, else JSON lines."""
    return "parquet" if find_spec("pyarrow") else "jsonl"


def encode_records(records: Sequence[Record], form: PartForm) -> bytes:
    r"""Encode the records of a part. All Parquet parts have the same columns.

    Examples
    --------
    >>> encode_records([{"id": "treaty.txt"}], "jsonl")
    b'{"id": "treaty.txt"}\n'
    """
    if form == "jsonl":
        lines = "".join(json.dumps(record) + "\n" for record in records)
        return lines.encode("ascii")
    import pyarrow as pa
    import pyarrow.parquet as pq

    sentence = {
        "start": pa.int64(),
        "end": pa.int64(),
        "score": pa.float32(),
        "logit": pa.float32(),
        "text": pa.string(),
        "section": pa.string(),
    }
    column_types = dict.fromkeys(COLUMNS, pa.string())
    column_types["document_score"] = pa.float32()
    column_types["sentence_count"] = pa.int64()
    column_types["tokens"] = pa.int64()
    column_types["sentences"] = pa.list_(pa.struct(list(sentence.items())))
    table = pa.Table.from_pylist(list(records), pa.schema(list(column_types.items())))
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()
