"""Folders of Chroma's chunking evaluation."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evidence.chunking import is_chunking, read_chunking
from spscanner_lab.evidence.data_lines import DataError

TEXTS = {
    "harbours": "The quay is old.\r\nIt was widened in 1911, and the crane came later.",
    "wells": "Dry — a well.",
}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    (folder / "corpora").mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / "corpora" / f"{name}.md").write_bytes(text.encode())
    with (folder / "questions_df.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.DictWriter(file, ["question", "references", "corpus_id"])
        lines.writeheader()
        lines.writerows(rows)
    return folder


def row(
    content: str, start: int, name: str = "harbours", question: str = "When?"
) -> dict[str, Any]:
    references = [
        {"content": content, "start_index": start, "end_index": start + len(content)}
    ]
    return {
        "question": question,
        "references": json.dumps(references),
        "corpus_id": name,
    }


def test_questions_and_their_exact_spans(tmp_path: Path) -> None:
    folder = written(
        tmp_path / "chroma",
        row("widened in 1911", 24),
        row("a well", 6, "wells", 'What, "exactly"?'),
    )
    assert is_chunking(folder)
    assert not is_chunking(tmp_path)
    harbours, wells = read_chunking(folder)
    assert (harbours.doc_id, harbours.source) == ("harbours", "chroma")
    assert [harbours.text[slice(*span)] for span in harbours.questions[0].evidence] == [
        "widened in 1911"
    ]
    assert (wells.questions[0].text, wells.questions[0].evidence) == (
        'What, "exactly"?',
        ((6, 12),),
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            row("widened", 25),
            "row 1: expected 'widened' at characters 25 to 32 .*got 'idened ",
        ),
        (row("widened", -3), "characters -3 to 4"),
        (row("widened", 10**7), "expected 'widened'"),
        (
            row("widened", 24, "piers"),
            "a question, and a corpus_id of harbours, wells, got 'piers'",
        ),
        (row("widened", 24, "../corpora/wells"), "got '../corpora/wells'"),
        (row("widened", 24, question=" "), "expected a question"),
        (
            row("widened", 24) | {"references": "[{'content': 1}]"},
            "a JSON list of content, start_index",
        ),
        (row("widened", 24) | {"references": "[1]"}, "a JSON list of content"),
        (row("widened", 24) | {"references": "[]"}, "expected at least one reference"),
    ],
)
def test_rows_that_are_wrong(
    wrong: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_chunking(written(tmp_path / "chroma", wrong))
