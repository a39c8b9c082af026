"""synthesize_with_a_provider.py: what it says where a key or a package is missing."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "synthesize_with_a_provider.py"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(
        command, env={**kept, **environment}, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_missing_key_is_one_line(tmp_path: Path) -> None:
    done = run(tmp_path / "a.txt")
    assert done.returncode == 1
    assert done.stderr == (
        "OPENAI_API_KEY is not set: set it to the key of your account at the provider, then run this again\n"
    )


def test_missing_packages_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A text.")
    done = run(tmp_path / "a.txt", "--model", "anthropic:claude", ANTHROPIC_API_KEY="none")
    assert done.returncode == 1
    assert "pip install llama-index-llms-anthropic" in done.stderr
    assert "pip install langchain-anthropic" in done.stderr
