"""A bar that is shown where somebody looks."""

import io
import sys

import pytest

from spscanner_rag.retrieval.progress_bar import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, is_shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bar(None) as texts_done:
            assert (texts_done is not None) == is_shown
            if texts_done is not None:
                texts_done(3, 8)
        assert ("3/8" in stream.getvalue()) == is_shown


def test_no_bar_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar(False) as texts_done:
        assert texts_done is None
    with progress_bar(True):
        pass  # nothing is prepared
    assert terminal.getvalue() == ""
