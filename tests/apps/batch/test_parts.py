"""Inputs and parts at addresses that pyarrow's file systems open."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spscanner_rag.apps.batch.parts import (
    AddressFolder,
    LocalFolder,
    PartChangedError,
    parts_folder,
)
from spscanner_rag.apps.batch.plan import plan_of
from spscanner_rag.apps.batch.run import Progress
from spscanner_rag.apps.batch.tables import Columns
from spscanner_rag.system.run_inputs import OtherRunError
from tests.apps.batch.conftest import Rows, Run, pairs

pytest.importorskip("pyarrow", reason="addresses need pyarrow")


def address(path: Path | str) -> str:
    return f"file://{path}"


def parts_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def test_a_path_or_an_address(tmp_path: Path) -> None:
    assert isinstance(parts_folder(tmp_path), LocalFolder)
    assert isinstance(parts_folder(address(tmp_path)), AddressFolder)
    with pytest.raises(ValueError, match="no file system of pyarrow opens it"):
        parts_folder("nonsense://bucket/out")


@pytest.mark.parametrize("kind", ["json_lines", "parquet"])
def test_inputs_and_parts_at_addresses_are_those_of_paths(
    run: Run, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    write: Callable[..., str] = request.getfixturevalue(kind)
    path = write(pairs(7), f"in/rows.{'jsonl' if kind == 'json_lines' else kind}")
    run(path, tmp_path / "local")
    done = run(address(tmp_path / "in"), address(tmp_path / "remote" / "deep"))
    assert (done.rows, done.done) == (7, 3)
    assert parts_of(tmp_path / "remote" / "deep") == parts_of(tmp_path / "local")


def test_a_run_at_an_address_resumes_and_refuses(
    json_lines: Rows, run: Run, tmp_path: Path
) -> None:
    path = json_lines(pairs(9))
    out = address(tmp_path / "out")

    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, out, show=stop)
    done = run(path, out)
    assert (done.resumed, done.done) == (2, 1)
    with pytest.raises(OtherRunError, match="give the same again, or another --out"):
        run(path, out, rows=2)
    (tmp_path / "out" / "part-000001.jsonl").write_bytes(b"{}\n")
    with pytest.raises(PartChangedError, match=r"part-000001.*delete it"):
        run(path, out)
    (tmp_path / "out" / "_batch.json").unlink()
    with pytest.raises(OtherRunError, match=r"without _batch\.json"):
        run(path, out)


def test_documents_at_an_address(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("The keeper left.")
    (tmp_path / "in" / "_b.txt").write_text("It rained.")
    plan = plan_of([address(tmp_path / "in")], Columns(), 10, has_queries=True)
    assert plan.chunks[0].paths == (address(tmp_path / "in" / "a.txt"),)
    with pytest.raises(ValueError, match="cannot be read"):
        plan_of([address(tmp_path / "none.jsonl")], Columns(), 10, has_queries=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="nothing can be read"):
        plan_of([address(tmp_path / "empty")], Columns(), 10, has_queries=True)
