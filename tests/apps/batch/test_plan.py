"""Which rows make each part."""

from pathlib import Path

import pytest

from spscanner_rag.apps.batch import plan as plan_module
from spscanner_rag.apps.batch.inputs import list_inputs
from tests.apps.batch.conftest import Rows, pairs, parts_of, planned


@pytest.mark.parametrize("kind", ["json_lines", "parquet"])
def test_every_row_is_in_one_part_in_order(
    kind: str, request: pytest.FixtureRequest
) -> None:
    write = request.getfixturevalue(kind)
    plan = planned(write(pairs(10)), rows=4)
    found = parts_of(plan)
    assert [len(part) for part in found] == [4, 4, 2]
    assert [row.id for part in found for row in part] == [
        f"row-{number}" for number in range(10)
    ]
    assert [chunk.number for chunk in plan.chunks] == [0, 1, 2]
    assert found[2][1].document == pairs(10)[9]["text"]


def test_long_rows_end_a_part_early(
    json_lines: Rows, parquet: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "CHUNK_BYTES", 1000)
    long = [{"query": "Who?", "text": f"{number} " * 300} for number in range(6)]
    for path in (json_lines(long), parquet(long)):
        plan = planned(path, rows=500)
        assert len(plan.chunks) >= 3
        assert [row.document for part in parts_of(plan) for row in part] == [
            each["text"] for each in long
        ]


def test_documents_beside_tables_are_told(tmp_path: Path, json_lines: Rows) -> None:
    folder = Path(json_lines(pairs(1), "folder/rows.jsonl")).parent
    assert list_inputs([str(folder)]).notes == []
    for name in ("b.txt", "a.HTML", "_left.txt", "program.exe"):
        (folder / name).write_text("It rained.")
    files = list_inputs([str(folder)])
    assert [Path(path).name for path in files.tables] == ["rows.jsonl"]
    assert files.documents == []
    assert files.notes == [
        f"{folder}: 2 documents beside tables of rows are not read (first:"
        f" {folder / 'a.HTML'}); give them as inputs of their own"
    ]


def test_a_folder_is_its_tables_without_hidden_files(
    tmp_path: Path, json_lines: Rows
) -> None:
    for name in (
        "in/b.jsonl",
        "in/a/c.jsonl",
        "in/_meta.jsonl",
        "in/.hidden.jsonl",
        "in/_old/d.jsonl",
    ):
        json_lines(pairs(1), name)
    paths = [chunk.paths[0] for chunk in planned(tmp_path / "in").chunks]
    assert [Path(path).name for path in paths] == ["c.jsonl", "b.jsonl"]


def test_inputs_that_cannot_be_scanned_are_refused(
    tmp_path: Path, json_lines: Rows, parquet: Rows
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    cases = [
        (tmp_path / "none.jsonl", "cannot be read"),
        (empty, "nothing can be read"),
        (json_lines([]), "got no row"),
        (parquet([{"query": "q", "body": "t"}]), "expected a column of strings 'text'"),
        (json_lines([], "false.parquet"), "not a Parquet file"),
        (tmp_path / "a.txt", "without a question"),
    ]
    for path, message in cases:
        with pytest.raises(ValueError, match=message):
            planned(path)
