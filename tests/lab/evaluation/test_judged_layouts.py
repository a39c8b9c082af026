"""Judged corpora in the layouts of LongEmbed and MLDR."""

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evaluation.judged import is_beir, read_beir
from spscanner_lab.evidence.data_lines import DataError

Records = Iterable[Mapping[str, Any]]

LONG_EMBED: dict[str, Records] = {
    "corpus.jsonl": [
        {"doc_id": "d1", "text": "Otters."},
        {"doc_id": "d2", "text": "x"},
    ],
    "queries.jsonl": [{"qid": "q1", "text": "Who?"}, {"qid": "q2", "text": "Where?"}],
    "qrels.jsonl": [{"qid": "q1", "doc_id": "d1"}, {"qid": "q2", "doc_id": "d2"}],
}
MLDR: dict[str, Records] = {
    "corpus.jsonl": [{"docid": "d1", "text": "Otters."}, {"docid": "d2", "text": "x"}],
    "test.jsonl": [
        {"query_id": "q1", "query": "Who?", "positive_passages": [{"docid": "d1"}]},
        {"query_id": "q2", "query": "Where?", "positive_passages": [{"docid": "d2"}]},
    ],
}


def folder_of(path: Path, files: Mapping[str, Records], packed: bool = False) -> Path:
    path.mkdir()
    for name, records in files.items():
        content = "".join(json.dumps(record) + "\n" for record in records).encode()
        if packed:
            (path / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize("files", [LONG_EMBED, MLDR], ids=["LongEmbed", "MLDR"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_the_layout_is_told_by_its_files(
    files: Mapping[str, Records], packed: bool, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "long", files, packed)
    assert is_beir(folder)
    judged = read_beir(folder)
    assert [document.text for document in judged.documents] == ["Otters.", "x"]
    assert judged.queries == {"q1": "Who?", "q2": "Where?"}
    assert judged.qrels == {"q1": {"d1": 1}, "q2": {"d2": 1}}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            LONG_EMBED | {"qrels.jsonl": [{"qid": "q1"}]},
            "line 1: expected strings under",
        ),
        (
            LONG_EMBED | {"corpus.jsonl": [{"_id": "d1"}]},
            "an? .*object with doc_id",
        ),
        (
            LONG_EMBED | {"qrels.jsonl": [{"qid": "q1", "doc_id": "d9"}]},
            "document 'd9'",
        ),
        (MLDR | {"test.jsonl": [{"query_id": "q", "query": "?"}]}, "positive_passages"),
        (
            MLDR
            | {"test.jsonl": [{"query_id": "q", "positive_passages": [{"id": 1}]}]},
            "a list of objects with docid under positive_passages",
        ),
        ({"corpus.jsonl": [{"_id": "d1"}]}, "or MLDR's corpus.jsonl"),
    ],
)
def test_bad_folders(
    files: Mapping[str, Records], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_beir(folder_of(tmp_path / "long", files))
