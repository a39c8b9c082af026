import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "hub_checkpoint.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.slow
def test_shows_the_best_sentences_of_any_checkpoint(tiny_checkpoint: Path) -> None:
    shown = run(
        *("--model", str(tiny_checkpoint), "--device", "cpu", "--local-files-only"),
        *("--top-k", "3", "--characters", "5000"),
    )
    assert shown.returncode == 0, shown.stderr
    rows = [line for line in shown.stdout.splitlines() if line.startswith("│ 0.")]
    assert len(rows) == 3
    assert "Who persuaded Anne" in shown.stdout


@pytest.mark.slow
def test_a_checkpoint_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    shown = run("--model", str(tmp_path / "missing"), "--device", "cpu", "--local-files-only")
    assert shown.returncode == 1
    assert "missing" in shown.stderr
    assert "Traceback" not in shown.stderr
