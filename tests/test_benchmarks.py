import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def benchmark(*arguments: str, out: Path) -> dict[str, Any]:
    """Run a benchmark as a user does and return its report; its exit status says whether bounds were kept."""
    command = [sys.executable, "-m", "benchmarks", *arguments, "--out", str(out)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=280)
    assert out.is_file(), done.stderr
    report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert done.returncode == (0 if report["ok"] else 1)
    assert f"python -m benchmarks {arguments[0]}" in done.stdout
    return report


@pytest.mark.slow
def test_transformers_agrees_with_this_package(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    report = benchmark(
        "transformers", "--shape", "tiny", "--tokens", "300", "--repeats", "1", out=tmp_path / "report.json"
    )
    assert report["ok"]
    assert report["results"]["largest hidden difference, spscanner float32"] <= 1e-4
    assert report["results"]["tokens/s, spscanner bfloat16"] > 0
    assert report["machine"]["cores"] >= 1
    assert report["versions"]["torch"] != "not installed"


@pytest.mark.slow
def test_memory_and_time_of_a_small_model(tiny_checkpoint: Path, tmp_path: Path) -> None:
    common = ("--model", str(tiny_checkpoint), "--scale", "0.01")
    memory = benchmark("memory", *common, out=tmp_path / "memory.json")["results"]
    assert {"peak MB, 300 characters", "peak MB, 30,000 characters"} < set(memory)
    linear = benchmark("linear", *common, "--repeats", "1", out=tmp_path / "linear.json")["results"]
    assert linear["characters per second"] > 0


@pytest.mark.slow
def test_import_times_every_name(tmp_path: Path) -> None:
    results = benchmark("import", "--repeats", "1", out=tmp_path / "import.json")["results"]
    assert "seconds, import spscanner_rag" in results
    assert "seconds, from spscanner_rag import Scanner" in results


@pytest.mark.slow
def test_speed_of_a_tiny_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    kinds = ("torch", "mamba-ssm", "transformers", "published")
    results = benchmark(
        *("speed", "--sizes", "tiny", "--tokens", "30", "60", "--repeats", "1", "--dtype", "float32"),
        *("--kinds", *kinds),
        out=tmp_path / "speed.json",
    )["results"]
    assert results["GB/s of a large copy"] > 0
    for tokens in (30, 60):
        for kind in ("torch", "transformers"):
            row = results[f"tiny, {tokens} tokens, {kind}"]
            assert row["tokens/s"] == pytest.approx(1e3 * tokens / row["ms"])
            assert 0 < row["share of the limit"] < 1
        assert "CUDA only" in results[f"tiny, {tokens} tokens, published"]


@pytest.mark.slow
def test_speed_begins_nothing_when_the_time_is_up(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    options = ("--sizes", "tiny", "--tokens", "30", "--kinds", "torch", "--budget", "0")
    results = benchmark("speed", *options, out=tmp_path / "speed.json")["results"]
    assert results["tiny, 30 tokens, torch"] == "not measured: no time left"
