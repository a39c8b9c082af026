"""JSON lines that survive a kill."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spscanner_rag.system.json_lines import append_records, complete_lines


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
unlimited = resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
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


def test_where_the_first_new_line_begins_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    assert append_records(path, [{"number": 1}]) == 0
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"{")  # the last writer was killed
    assert append_records(path, [{"number": 2}]) == size
    assert path.read_bytes()[size:] == b'{"number": 2}\n'
