"""The `spscanner` program: help, version, and how errors end it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from spscanner_rag import Scanner, __version__

QUESTION = "Who signed the treaty?"
Run = Callable[..., Any]  # code, out, err


class OutOfMemoryError(RuntimeError):
    """Named like torch's exception."""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "spscanner: interrupted\n"),
        (OutOfMemoryError("tried to allocate"), 1, "lower --segment-tokens"),
        (
            ValueError("two\nlines \x1b[31m\ud800"),
            2,
            "spscanner: two lines \\x1b[31m\\ud800\n",
        ),
        (ImportError('run `pip install ".[cuda]"`'), 2, 'pip install ".[cuda]"'),
    ],
)
def test_how_a_scan_that_stops_ends(
    scan: Run,
    document: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    message: str,
) -> None:
    monkeypatch.setattr(Scanner, "scan_many", Mock(side_effect=error))
    ended = scan(document, "--out", document.parent / "out.txt")
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert [path.name for path in document.parent.iterdir()] == ["treaty.txt"]


@pytest.mark.parametrize(
    "command",
    [
        "info {model}",
        "scan {document} --model {model} -q Who?",
        "compare {document} --retrievers scanner:{model} -q Who?",
        "eval {data} --retrievers scanner:{model} --context-ablation --out {data}.out",
    ],
)
def test_a_checkpoint_without_a_tokenizer_takes_the_one_given(
    run: Run, document: Path, published_checkpoint: Path, tmp_path: Path, command: str
) -> None:
    model = shutil.copytree(published_checkpoint, tmp_path / "bare")
    (model / "tokenizer.json").rename(tmp_path / "own.json")
    line = {
        "doc_id": "d",
        "source": "s",
        "text": document.read_text(encoding="utf-8"),
        "questions": [],
    }
    line["questions"] = [{"qid": "q", "question": "Who?", "evidence": [[0, 5]]}]
    (tmp_path / "data.jsonl").write_text(json.dumps(line))
    words = command.format(
        model=model, document=document, data=tmp_path / "data.jsonl"
    ).split()
    run(*words, "--dtype", "float32").refuses("(--tokenizer PATH)")
    assert (
        run(*words, "--dtype", "float32", "--tokenizer", tmp_path / "own.json").code
        == 0
    )


def test_a_defect_keeps_its_traceback(
    scan: Run, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scanner, "scan_many", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        scan(document)


def test_help_and_version(run: Run) -> None:
    assert run("--version") == (0, f"spscanner {__version__}\n", "")
    code, out, _ = run("--help")
    assert (code, {"scan", "info"} <= set(out.split())) == (0, True)
    help_of_scan = run("scan", "--help").out
    assert '"score": float, "logit": float,' in help_of_scan
    assert '"neighbour": bool, "text": str}]}]}' in help_of_scan
    assert "byte order mark" in " ".join(help_of_scan.split())
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "Usage: spscanner" in err


@pytest.mark.parametrize(
    ("command", "wrong", "right"),
    [("scan", "--topk", "--top-k"), ("eval", "--retriever", "--retrievers")],
)
def test_a_wrong_option_is_told_with_the_right_one(
    run: Run, command: str, wrong: str, right: str
) -> None:
    refused = run(command, "a.txt", wrong, "3")
    refused.refuses(f"No such option: {wrong}; did you mean ")
    refused.refuses(right)
    refused.refuses(f"? See `spscanner {command} --help`\n")


SECONDS = 240  # seconds for a program to end on a busy machine


def start(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, **options)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """The exit code of a program, and what it wrote on standard error."""
    assert process.stderr is not None
    return process.wait(SECONDS), process.stderr.read()


def test_help_loads_no_torch() -> None:
    code = """
import sys
from spscanner_rag.apps.cli import main
for command in ("scan", "compare", "eval", "batch", "train", "serve", "synthesize"):
    assert main([command, "--help"]) == 0
heavy = {"torch", "tokenizers", "sentencex", "nltk", "tiktoken", "huggingface_hub"}
heavy |= {"bm25s", "filelock"}
heavy &= set(sys.modules)
sys.exit(f"loaded {heavy}" if heavy else 0)
"""
    with start("-c", code, stdout=subprocess.DEVNULL) as process:
        assert ended(process) == (0, b"")


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(document: Path, checkpoint: Path) -> None:
    arguments = [
        "-m",
        "spscanner_rag.apps.cli",
        "scan",
        document,
        "-q",
        QUESTION,
        "--model",
        checkpoint,
    ]
    with start(*arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert ended(process) == (141, b"")


def test_ctrl_c_ends_a_scan_that_is_under_way(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code = """
import signal, sys
from spscanner_rag.apps.cli import main
# a parent may have switched it off
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""
    with start(
        "-c", code, "scan", tmp_path / "pipe", "-q", QUESTION, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with (tmp_path / "pipe").open(
            "wb"
        ):  # opens when the program does; the program then waits for more
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if (
                process.poll() is None
            ):  # it came just before the system's read, which hides it from Python
                process.send_signal(signal.SIGINT)
            assert ended(process) == (130, b"spscanner: interrupted\n")
        assert process.stdout.read() == b""


@pytest.mark.slow
def test_a_full_disk_is_one_line(document: Path, checkpoint: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    arguments = [
        "-m",
        "spscanner_rag.apps.cli",
        "scan",
        document,
        "-q",
        QUESTION,
        "--model",
        checkpoint,
    ]
    with open("/dev/full", "wb") as full, start(*arguments, stdout=full) as process:
        code, told = ended(process)
    assert (code, told.count(b"\n")) == (2, 1)


def test_threads_do_not_spin(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """The program asks OpenMP for this setting, but keeps what the user has set."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    run("--version")
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    run("--version")
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


@pytest.mark.parametrize(
    ("arguments", "code", "out", "error"),
    [
        (["--version"], 0, f"spscanner {__version__}\n", ""),
        (["scan", "absent.txt", "Who?"], 2, "", "spscanner: absent.txt: no such file"),
        (["nothing"], 2, "", "spscanner: No such command 'nothing'"),
    ],
)
def test_a_process_of_its_own_ends_with_all_output(
    arguments: list[str], code: int, out: str, error: str
) -> None:
    with start(
        "-m", "spscanner_rag.apps.cli", *arguments, stdout=subprocess.PIPE
    ) as process:
        told = [stream.decode() for stream in process.communicate(timeout=SECONDS)]
    assert (process.returncode, told[0], told[1].startswith(error)) == (code, out, True)
