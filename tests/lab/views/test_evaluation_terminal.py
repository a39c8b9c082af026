"""The result of an evaluation in the terminal."""

from pathlib import Path

import pytest

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import rows_of
from spscanner_lab.views.evaluation_terminal import show_result
from tests.lab.views.result_pages import SETTINGS, records


def test_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    show_result(
        EvaluationResult(rows_of(records(), SETTINGS[:1]), [], SETTINGS[:1]),
        Path("out"),
    )
    assert "41.7" in capsys.readouterr().out
