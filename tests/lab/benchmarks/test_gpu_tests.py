"""The check of `gpu.sh` that its tests ran, and the packages that it brings."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from spscanner_lab.benchmarks import gpu_tests
from spscanner_lab.benchmarks.gpu_tests import fault_of
from tests.conftest import REPOSITORY

OTHERS = {"einops", "hypothesis", "pytest", "transformers"}
"""Packages that the tests and the table need, and the package does not."""

SUITE = '<testsuites><testsuite tests="{}" skipped="{}" failures="{}" errors="{}"/>'


def report_of(folder: Path, *counts: int) -> Path:
    path = folder / "tests.xml"
    path.write_text(SUITE.format(*counts) + "</testsuites>")
    return path


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ((5, 2, 0, 0), ""),
        ((5, 0, 1, 0), ""),  # a failure is a result
        ((5, 5, 0, 0), "5 were skipped, and none ran"),
        ((0, 0, 0, 0), "none ran"),
        ((1, 0, 0, 1), "1 could not begin"),
    ],
)
def test_tests_that_did_not_run_are_told(
    counts: tuple[int, ...], fault: str, tmp_path: Path
) -> None:
    assert fault in fault_of(report_of(tmp_path, *counts))
    assert bool(fault_of(report_of(tmp_path, *counts))) == bool(fault)


def test_the_program_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["gpu_tests", str(tmp_path / "absent.xml")])
    with pytest.raises(SystemExit, match="did not run: there is no report of tests"):
        gpu_tests.main()
    report = report_of(tmp_path, 1, 0, 0, 0)
    monkeypatch.setattr("sys.argv", ["gpu_tests", str(report)])
    gpu_tests.main()


def test_an_image_needs_nothing_but_pytorch_and_triton() -> None:
    """Whatever the package and the tests' fixtures import is brought along."""
    folder = REPOSITORY / "spscanner_lab" / "benchmarks"
    brought = set((folder / "gpu_packages.txt").read_text().split())
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    needed = {Requirement(line).name for line in project["dependencies"]}
    assert brought == (needed - {"torch"}) | OTHERS


def test_a_trial_brings_the_sentence_model_as_a_run_does() -> None:
    """The published scanner's units need it, and an image does not have it."""
    folder = REPOSITORY / "spscanner_lab" / "benchmarks"
    script = (folder / "gpu.sh").read_text()
    trial, _, run = script.partition("--trial ]; then")[2].partition("\nelse\n")
    assert "NLTK_DATA=" in trial
    assert "NLTK_DATA=" in run.partition("\nfi\n")[0]
