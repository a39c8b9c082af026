"""Where a result goes, JSON lines that survive a kill, and the lock of a folder."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spscanner_rag.files.output import check_output, write_output
from spscanner_rag.system.json_lines import append_records, complete_lines
from spscanner_rag.system.run_inputs import difference
from spscanner_rag.system.strict_json import json_text, parse_json
from spscanner_rag.system.folder_lock import (
    LOCK_FILE,
    FolderInUseError,
    folder_lock,
    refuse_in_use,
)


def test_output_is_checked_before_the_work(tmp_path: Path) -> None:
    document = tmp_path / "document.txt"
    document.write_text("text")
    (tmp_path / "link.txt").symlink_to(document)
    with pytest.raises(ValueError, match="got a folder; expected a file"):
        check_output(tmp_path, [])
    with pytest.raises(ValueError, match="there is no folder"):
        check_output(tmp_path / "absent" / "out.html", [])
    for same in (document, tmp_path / "link.txt"):
        with pytest.raises(ValueError, match="got a document to scan"):
            check_output(same, ["-", str(document)])
    check_output(tmp_path / "new.html", [str(document)])
    check_output(Path(os.devnull), [str(document)])


def test_a_result_goes_to_a_file_or_to_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    write_output("é", tmp_path / "out", is_page=False)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "é"
    write_output("é", None, is_page=False)
    write_output("é", None, is_page=True)  # in UTF-8, as a page declares
    assert stream.buffer.getvalue() == b"\xe9\xc3\xa9"
    monkeypatch.setattr(sys, "stdout", text := io.StringIO())
    write_output("é", None, is_page=True)
    assert text.getvalue() == "é"


def test_json_is_ascii_and_strict() -> None:
    content = {"text": "é\x1b\ud800", "number": 1.5}
    assert json_text(content).isascii()
    assert json.loads(json_text(content)) == content
    with pytest.raises(ValueError, match="nan"):
        json_text({"number": float("nan")})


def test_old_leftovers_of_killed_programs_are_removed(tmp_path: Path) -> None:
    old, fresh = (tmp_path / f".out.html.{digit * 32}.part" for digit in "01")
    old.touch()
    fresh.touch()
    os.utime(old, (0, 0))
    write_output("page", tmp_path / "out.html", is_page=True)
    assert {path.name for path in tmp_path.iterdir()} == {fresh.name, "out.html"}


HOLD = """
import sys, time
from pathlib import Path
from spscanner_rag.system.folder_lock import (folder_lock)
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def held_by_another(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_folder_is_refused_while_another_process_holds_it(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with held_by_another(out):
        message = f"{out}: in use by another run; wait until it ends, or give"
        before = (out / LOCK_FILE).stat()
        for _ in range(2):
            with pytest.raises(FolderInUseError, match=message), folder_lock(out):
                pass
            with pytest.raises(FolderInUseError, match=message):
                refuse_in_use(out)
        assert (out / LOCK_FILE).stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_of_a_process_that_was_killed_is_no_obstacle(
    tmp_path: Path, kill: signal.Signals
) -> None:
    with held_by_another(tmp_path) as process:
        process.send_signal(kill)
        process.wait()
    assert (tmp_path / LOCK_FILE).exists()
    refuse_in_use(tmp_path)
    with folder_lock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_without_results_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), folder_lock(tmp_path / "out"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with folder_lock(tmp_path / "out"):
        (tmp_path / "out" / "results").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["results"]
    (tmp_path / "empty").mkdir()
    with folder_lock(tmp_path / "empty"):  # nor twice in the same process
        with pytest.raises(FolderInUseError), folder_lock(tmp_path / "empty"):
            pass
        assert (tmp_path / "empty" / LOCK_FILE).exists()
    assert (tmp_path / "empty").is_dir()


def test_leftovers_are_removed_once_the_lock_is_held(tmp_path: Path) -> None:
    leftover = tmp_path / f".results.csv.{'0' * 32}.part"
    leftover.touch()
    with held_by_another(tmp_path):
        leftover.touch()
        with pytest.raises(FolderInUseError), folder_lock(tmp_path):
            pass
        assert leftover.exists()
    with folder_lock(tmp_path) as removed:
        assert removed == [leftover.name]
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = r"file: cannot be written to \(File exists\)"
    with pytest.raises(ValueError, match=message), folder_lock(tmp_path / "file"):
        pass


def records(path: Path) -> list[object]:
    return [json.loads(line) for _, line in complete_lines(path)]


def test_what_was_appended_is_read_with_its_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    assert records(path) == []
    path.touch()
    assert records(path) == []
    append_records(path, [{"text": "é\u2028\ud800\n"}, {"number": 1}])
    append_records(path, [])
    append_records(path, iter([{"number": 2}]))
    assert path.read_bytes().isascii()
    assert [number for number, _ in complete_lines(path)] == [1, 2, 3]
    assert records(path) == [{"text": "é\u2028\ud800\n"}, {"number": 1}, {"number": 2}]


@pytest.mark.parametrize("torn", ["{", '{"number": 2}', "x" * 100_000])
@pytest.mark.parametrize("before", [[], [{"number": 1}]])
def test_a_torn_line_is_left_out_and_cut_off(
    tmp_path: Path, before: list[dict[str, int]], torn: str
) -> None:
    path = tmp_path / "records.jsonl"
    append_records(path, before)
    whole = path.read_bytes()
    path.write_bytes(whole + torn.encode())
    assert records(path) == before
    assert path.read_bytes() == whole + torn.encode(), "reading changes nothing"
    append_records(path, [{"number": 2}])
    assert path.read_bytes() == whole + b'{"number": 2}\n'


def test_a_record_that_is_no_json_appends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with pytest.raises(TypeError):
        append_records(path, [{"number": 1}, {"path": path}])
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no resource limits")
def test_a_full_disk_leaves_all_or_none(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    code = f"""
import resource, signal
from pathlib import Path
from spscanner_rag.system.json_lines import append_records
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path({str(path)!r})
append_records(path, [{{"number": 1}}])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for text in ("x" * 2000, "y"):
    try:
        append_records(path, [{{"number": 2}}, {{"text": text}}])
    except OSError:
        print("full", flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
append_records(path, [{{"number": 3}}])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("full\n", "")
    assert records(path) == [{"number": 1}, {"number": 2}, {"text": "y"}, {"number": 3}]


def test_a_line_that_is_finished_meanwhile_is_not_read_in_two_parts(
    tmp_path: Path,
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"number": 1}\n{"number"')
    lines = complete_lines(path)
    assert next(lines) == (1, b'{"number": 1}\n')
    assert next(lines, None) is None
    with path.open("ab") as file:
        file.write(b': 2}\n{"number": 3}\n')
    assert next(lines, None) is None
    assert [number for number, _ in complete_lines(path)] == [1, 2, 3]


@pytest.mark.parametrize(
    "content", ['{"a": 1, "a": 1}', '[{"x": {"b": 1, "a": 2, "c": 3, "a": 4}}]']
)
def test_a_key_that_is_there_twice(content: str) -> None:
    with pytest.raises(ValueError, match="the key 'a' twice"):
        parse_json(content)
    with pytest.raises(
        ValueError, match="the key '39999' twice"
    ):  # within a test's time limit of a minute
        parse_json(
            json.dumps({str(n): n for n in range(40_000)})[:-1] + ', "39999": 1}'
        )
    assert parse_json(b'{"a": [{"b": 1}, {"b": 2}]}') == {"a": [{"b": 1}, {"b": 2}]}


@pytest.mark.parametrize(
    ("before", "now", "leaving_out", "told"),
    [
        (
            {"a": [1, 2], "b": {"c": None}},
            {"a": (1, 2)},
            (),
            "",
        ),  # equal once it is read back
        (
            {"a": {"b": 1}, "c": "0" * 64},
            {"a": {"b": 2}, "c": "f" * 64},
            (),
            "a: b: 1, now 2; c: 000000000000..., now ffffffffffff...",
        ),
        ({"a": {"b": {"c": 1}}}, {"a": {}}, {("a", "b")}, ""),
        (
            dict.fromkeys("abcdefghi", 0),
            {},
            (),
            "; ".join(f"{a}: 0, now None" for a in "abcdef") + "; and 3 more",
        ),
    ],
)
def test_differences_are_named_by_their_place(
    before: dict[str, object],
    now: dict[str, object],
    leaving_out: set[tuple[str, str]],
    told: str,
) -> None:
    assert difference(before, now, leaving_out) == told
