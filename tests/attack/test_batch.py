"""Changes during a batch run, and folder entries that are not files.

They are reported by name, and never counted as done.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.apps.batch.parts import DIGESTS, PartChangedError
from spscanner_rag.apps.batch.plan import InputChangedError, plan_of
from spscanner_rag.apps.batch.rows import Query, RowReader
from spscanner_rag.apps.batch.run import Progress, RepeatedIds
from spscanner_rag.apps.batch.tables import Columns
from spscanner_rag.files.folders import read_all
from spscanner_rag.files.reading import read
from tests.apps.batch.conftest import Rows, Run, json_lines, pairs, parquet, run
from tests.attack.conftest import Attempt

__all__ = ["json_lines", "parquet", "run"]  # fixtures


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "emptied": lambda part: part.write_bytes(b""),
    "cut": lambda part: part.write_bytes(part.read_bytes()[:-20]),
    "one bit flipped": flipped,
    "the part before": lambda part: shutil.copy(
        part.with_name(part.name.replace("1.", "0.")), part
    ),
    "a line added": lambda part: part.write_bytes(part.read_bytes() + b"{}\n"),
    "a folder": as_folder,
    "a link to another": lambda part: (
        part.unlink(),
        part.symlink_to(part.name.replace("1.", "0.")),
    ),
}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_part_that_was_changed_is_not_counted_as_done(
    json_lines: Rows, run: Run, tmp_path: Path, attempt: Attempt, name: str, form: str
) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    path, out = json_lines(pairs(7)), tmp_path / "out"
    run(path, out, form=form)
    part = out / f"part-000001.{form}"
    DAMAGES[name](part)
    with (
        attempt("batch: changed parts"),
        pytest.raises(PartChangedError, match=r"part-000001.*delete it"),
    ):
        run(path, out, form=form)
    shutil.rmtree(part) if part.is_dir() else part.unlink()
    done = run(path, out, form=form)
    assert (done.resumed, done.done) == (2, 1)


@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"part": 1}', "[" * 9_000])
def test_parts_whose_digest_is_damaged_are_made_again(
    json_lines: Rows, run: Run, tmp_path: Path, line: str
) -> None:
    path, out = json_lines(pairs(4)), tmp_path / "out"
    run(path, out)
    lines = (out / DIGESTS).read_text().splitlines()
    (out / DIGESTS).write_text(f"{line}\n{lines[1]}\n")
    assert (run(path, out).done, run(path, out).done) == (1, 0)


CHANGES: dict[str, Callable[[Path], object]] = {
    "of the same length": flipped,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "shorter": lambda path: os.truncate(path, path.stat().st_size // 2),
    "replaced": lambda path: (
        shutil.copy(path, path.with_suffix(".new")),
        os.replace(path.with_suffix(".new"), path),
    ),
    "with its old time": lambda path: (flipped(path), os.utime(path, ns=(0, 0))),
}


@pytest.mark.parametrize("kind", ["json_lines", "parquet"])
@pytest.mark.parametrize("name", CHANGES)
def test_an_input_that_changes_while_it_is_read_ends_the_run(
    run: Run,
    tmp_path: Path,
    attempt: Attempt,
    request: pytest.FixtureRequest,
    kind: str,
    name: str,
) -> None:
    path = Path(request.getfixturevalue(kind)(pairs(9)))
    old = path.stat()

    def change(progress: Progress) -> None:
        if progress.done == 1:
            CHANGES[name](path)
            if name == "with its old time":
                os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))

    with (
        attempt("batch: changing inputs"),
        pytest.raises(InputChangedError, match="changed while it was read"),
    ):
        run(str(path), tmp_path / "out", show=change)
    assert [part.name for part in (tmp_path / "out").glob("part-*")] == [
        "part-000000.jsonl"
    ]


def test_a_document_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: Attempt
) -> None:
    path, fstat = tmp_path / "live.txt", os.fstat
    for added in ("It rained. " * 900, "It rained. ", ""):
        path.write_text("The keeper left. " * 90)

        def changing(descriptor: int, now: str = added) -> os.stat_result:
            result = fstat(descriptor)
            path.write_text(path.read_text() + now if now else "A.")
            return result

        with monkeypatch.context() as patch, attempt("batch: changing inputs"):
            patch.setattr(os, "fstat", changing)
            with pytest.raises(ValueError, match="does not change while it is read"):
                read(path)


def test_ids_of_rows_are_distinct_or_told(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    asked = [Query("1", "Who left?")]
    tables = [
        json_lines([{"text": "A."}, {"text": "B."}], f"{name}/rows.jsonl")
        for name in "abc"
    ]
    plan = plan_of(tables, Columns(), 10, True)
    reader = RowReader(Columns(), asked)
    ids = [row.id for chunk in plan.chunks for row in reader.rows(chunk)]
    assert len(set(ids)) == len(ids) == 6
    repeated = RepeatedIds()
    assert repeated.add(ids) == []
    again: list[str] = []
    for chunk in plan_of(tables[:1] * 2, Columns(), 10, True).chunks:
        rows = reader.rows(chunk)
        assert len(rows) == 2
        again += repeated.add(row.id for row in rows)
    assert again == ids[:2] * 2
    values = [1, "1", 1.5, "1.5", None, "rows.jsonl:5", True, "true", "x", "x"]
    records = [
        {"id": value, "query": "Who left?", "text": "He left."} for value in values
    ]
    done = run(json_lines(records), tmp_path / "out", rows=99)
    assert done.repeated == ["1", "1.5", "rows.jsonl:5", "true", "x"]


SPECIAL: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a device without an end": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nothing.txt"),
    "a folder with an ending": lambda path: (
        (path.parent / "inner").mkdir() or path.symlink_to("inner")
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "documents"
    made.mkdir()
    (made / "good.txt").write_text("The keeper left. It rained.")
    return made


@pytest.mark.parametrize("name", SPECIAL)
def test_only_regular_files_of_a_folder_are_read(
    folder: Path, attempt: Attempt, name: str
) -> None:
    SPECIAL[name](folder / "other.txt")
    told: list[str] = []
    with attempt("folders: only regular files"):
        assert [
            Path(document.path).name
            for document in read_all([str(folder)], told.append)
        ] == ["good.txt"]
        plan = plan_of([str(folder)], Columns(), 10, True)
        assert [Path(path).name for chunk in plan.chunks for path in chunk.paths] == [
            "good.txt"
        ]
    if name != "a folder with an ending":  # a link to a folder is not followed
        assert [
            note
            for note in told
            if "not regular files, such as" in note and "other.txt" in note
        ]
        assert "not regular files" in plan.notes[0]


def test_links_out_of_a_folder_are_told(folder: Path, tmp_path: Path) -> None:
    for number, name in enumerate(("secret.txt", "documents-of-another.txt")):
        (tmp_path / name).write_text("A secret.")
        (folder / f"link{number}.txt").symlink_to(f"../{name}")
    (folder / "inside.txt").symlink_to("good.txt")
    told: list[str] = []
    read_all([str(folder)], told.append)
    assert [
        note
        for note in told
        if f"2 links lead out of it, such as {folder}/link0.txt" in note
    ]
    assert "2 links lead out" in plan_of([str(folder)], Columns(), 10, True).notes[0]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_files_of_the_system_are_not_read(folder: Path) -> None:
    for name in ("environ", "mem"):
        (folder / f"{name}.txt").symlink_to(f"/proc/self/{name}")
    told: list[str] = []
    assert len(read_all([str(folder)], told.append)) == 1
    assert told
