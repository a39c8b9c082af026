"""What the benchmark of speed makes of its numbers."""

import pytest

from benchmarks.limits import bytes_per_token, work_of
from benchmarks.profile import OTHER, kind_of
from benchmarks.speed_results import SpeedResults
from benchmarks.table import print_report
from benchmarks.targets import TARGETS, judge
from spscanner_rag.mamba2.config import Mamba2Config

SHAPE_130M = Mamba2Config(d_model=768, n_layer=24, vocab_size=50288)


def row(rate: float, **others: float) -> dict[str, float]:
    return {"tokens/s": rate, "share, projections only": 0.5, "ms": 1.0} | others


def test_targets_on_a_cpu() -> None:
    results = SpeedResults("cpu")
    results.readings = {
        ("130m", "float32", "transformers", 1000): row(100.0),
        ("130m", "float32", "transformers", 10_000): "out of memory",
        ("130m", "float32", "torch", 1000): row(310.0),
        ("130m", "float32", "torch", 10_000): row(320.0, **{"share, projections only": 0.8}),
        ("default", "float32", "torch", 100_000): row(9.0, ms=100.0, **{"peak MB": 300.0}),
        ("default", "float32", "torch", 1_000_000): row(9.0, ms=1051.0, **{"peak MB": 303.0}),
    }
    results.scanner_rows = {
        ("default", "100,000 tokens, all-MiniLM-L6-v2"): {"ms": 1.0, "times the scan": 1.9},
        ("default", "16 questions on 10,000 tokens"): "not measured: would take about 9 s",
    }
    targets = judge(results)
    assert len(targets) == len(TARGETS)
    assert targets["130m, float32, over transformers float32"] == {
        "got": pytest.approx(3.1),  # on the longest document that transformers read
        "wanted": "at least 3",
        "met": True,
    }
    share = targets["130m, float32, share of the product rate, projections only"]
    assert isinstance(share, dict)
    assert share["got"] == 0.8
    found = {name: target["met"] for name, target in targets.items() if isinstance(target, dict)}
    assert [met for name, met in found.items() if "MiniLM" in name] == [False]
    assert [met for name, met in found.items() if "times the time" in name] == [False]
    assert [met for name, met in found.items() if "peak memory" in name] == [True]
    told = {name: target for name, target in targets.items() if isinstance(target, str)}
    assert any("would take about 9 s" in reason for name, reason in told.items() if "16 questions" in name)
    assert all("device cuda" in reason for name, reason in told.items() if "H200" in name)


def test_targets_on_cuda() -> None:
    results = SpeedResults("cuda")
    for size in ("130m", "1.3b"):
        results.readings |= {
            (size, "bfloat16", "mamba-ssm", 69_000): row(1.5e6, ms=46.0),
            (size, "bfloat16", "torch", 69_000): row(0.5e6, ms=138.0),
        }
    results.readings["130m", "bfloat16", "published", 69_000] = row(0.4e6)
    targets = judge(results)
    assert targets["130m, bfloat16, 69,000 tokens, ms on an H200"] == {
        "got": 46.0,
        "wanted": "at most 45",
        "met": False,
    }
    over = targets["130m, bfloat16, 69,000 tokens, over the published path"]
    assert isinstance(over, dict)
    assert over["got"] == pytest.approx(3.75)
    assert isinstance(targets["1.3b, bfloat16, 69,000 tokens, ms on an H200"], dict)
    assert isinstance(targets["1,000,000 tokens, times the time of 100,000"], str)


def test_work_of_the_130m_shape() -> None:
    work = work_of(SHAPE_130M, 1000, 40, 4, 512)
    assert work.projections / 1000 == pytest.approx(180.2e6, rel=1e-3)
    assert work.projections < work.products < 1.2 * work.projections
    assert work.moved_bytes == 1000 * bytes_per_token(SHAPE_130M, 4, 512)
    assert bytes_per_token(SHAPE_130M, 2, 512) < bytes_per_token(SHAPE_130M, 4, 512)
    assert bytes_per_token(SHAPE_130M, 2, 32768) < bytes_per_token(SHAPE_130M, 2, 512)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("aten::mm", "projections"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN", "projections"),
        ("aten::bmm", "state space, products"),
        ("_chunk_scan_fwd_kernel", "state space, products"),
        ("aten::mkldnn_convolution", "convolution"),
        ("_layer_norm_fwd_1pass_kernel", "norms"),
        ("aten::exp", "exponentials, activations, cumulative sums"),
        ("aten::addcmul", "multiplications, additions"),
        ("aten::copy_", "copies"),
        ("aten::expand", OTHER),
        ("aten::matmul", OTHER),
    ],
)
def test_kinds_of_operations(operation: str, kind: str) -> None:
    assert kind_of(operation) == kind


def test_a_report_with_targets(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(
        {
            "command": "python -m benchmarks speed",
            "date": "2026-01-01",
            "machine": {"processor": "P", "cores": 2, "accelerator": "none"},
            "versions": {"torch": "2"},
            "results": {
                "rate": 123.456,
                "one": {"ms": 12.5, "tokens/s": 1234567.0},
                "two": {"ms": 0.5, "tokens/s": 2.0},
                "three": "not measured: no",
            },
            "targets": {"fast": {"got": 2.5, "wanted": "at least 3", "met": False}, "small": "not measured"},
            "ok": True,
        }
    )
    lines = capsys.readouterr().out.splitlines()
    assert sum("tokens/s" in line for line in lines) == 1  # one head for both rows
    assert any(line.split() == ["one", "12.5", "1,234,567.0"] for line in lines)
    assert any(line.split() == ["three", "not", "measured:", "no"] for line in lines)
    assert any("False" in line and "at least 3" in line for line in lines)
    assert "within bounds" not in lines
