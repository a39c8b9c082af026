"""The text view: the output for a terminal, a pipe and ASCII."""

import io
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from spscanner_rag.apps.pages import terminal as terminal_module
from spscanner_rag.apps.pages.scanned_document import ScannedDocument, select_together
from spscanner_rag.apps.pages.terminal import (
    page_progress,
    progress_bars,
    render_documents,
)
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult, Selection


def view(
    text: str,
    top_k: int = 1,
    context: int = 1,
    path: str = "a.txt",
    logits: Sequence[float] | None = None,
    **options: Any,
) -> ScannedDocument:
    spans = [match.span() for match in re.finditer(r"[^\s|][^|]*[^\s|]", text)]
    logits = (
        [-float(number) for number in range(len(spans))] if logits is None else logits
    )
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    result = ScanResult("Who?", text, starts, ends, logits)
    selection = Selection(top_k=top_k, context=context, order="score", **options)
    return select_together([TextFile(path, text)], [result], selection)[0]


def test_a_pipe_gets_one_line_a_sentence() -> None:
    long = "The fourth " + "goes on and on and " * 20 + "ends."
    scanned = view(
        f"First one. |\nSecond one.|\r\n Third\n one. |{long}", logits=[-1, -2, 5, 0.5]
    )
    assert render_documents([scanned], io.StringIO()).splitlines() == [
        f"a.txt {len(scanned.document.text)} characters, 4 sentences",
        "",
        "3:2",
        "            Second one.",
        "  1  0.993  Third one.",
        f"            {long}",
    ]


def test_neighbours_stop_at_the_ends_and_at_what_was_not_selected() -> None:
    words = view(
        "One. |Two. |Three. |Four.",
        top_k=2,
        context=2,
        logits=[3, 0, 0, 2],
        max_tokens=3,
        count_tokens=lambda text: len(re.findall(r"\w+", text)),
    )
    lines = render_documents([words], io.StringIO()).splitlines()
    shown = ["  1  0.953  One.", "            Two.", "", "1:21", "  2  0.881  Four."]
    assert lines[2:] == ["1:1", *shown]


def test_neighbours_that_meet_are_shown_once() -> None:
    logits = [0, 2, 0, 1, -1, -1, -1, -1, 3]
    scanned = view(
        "|".join(f"S{number}. " for number in range(9)), top_k=3, logits=logits
    )
    lines = render_documents([scanned], io.StringIO()).splitlines()
    assert [
        line.split()[-1] for line in lines if line.startswith(" ")
    ] == "S7. S8. S0. S1. S2. S3. S4.".split()


def test_the_last_line_says_how_much_is_kept_of_what_was_read() -> None:
    document = TextFile("a.txt", "One two. Three.")
    scored = ScanResult(
        "?", document.text, [0, 9], [8, 15], [1.0, 0.0], lambda text: len(text.split())
    )  # type: ignore[arg-type]
    shown = select_together([document] * 2, [scored] * 2, Selection(top_k=2))
    assert render_documents(shown, io.StringIO()).endswith(
        "\n\n4 of 6 tokens kept (66.7 %)\n"
    )
    counted = select_together(
        [document], [replace(scored, n_tokens=40)], Selection(top_k=1)
    )
    assert render_documents(counted, io.StringIO()).endswith(
        "\n\n2 of 40 tokens kept (5.0 %)\n"
    )


def test_ranks_follow_the_score_in_any_order() -> None:
    scanned = view("One. |Two. |Three.", top_k=3, context=0, logits=[1, 3, 2])
    in_document_order = replace(scanned, passages=scanned.result.select())
    lines = render_documents([in_document_order], io.StringIO()).splitlines()
    assert [line.split()[0] for line in lines if re.match(r" +\d", line)] == [
        "3",
        "1",
        "2",
    ]


def test_nothing_selected_and_nothing_to_select() -> None:
    nothing = view("One. |Two.", threshold=0.9, path="-")
    shown = render_documents([nothing, view(" ")], io.StringIO())
    assert shown.splitlines() == [
        "standard input 10 characters, 2 sentences",
        "No sentence was selected; the best score is 0.500.",
        "",
        "a.txt 1 characters, 0 sentences",
        "No sentence was selected; it has none.",
    ]


def test_a_terminal_gets_dimmed_neighbours_and_wrapped_lines(
    terminal: io.StringIO,
) -> None:
    scanned = view(
        "Before. |" + "Many words are in this sentence. " * 5 + "|After.",
        logits=[0, 5, 0],
    )
    shown = render_documents([scanned], terminal)
    assert "\x1b[2mBefore." in shown
    assert "\x1b[2mAfter." in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert max(map(len, plain.splitlines())) <= 60
    first, *rest = [
        line for line in plain.splitlines() if "words" in line or "sentence." in line
    ]
    assert first.startswith("  1  0.993  Many words")
    assert rest
    assert all(line.startswith(" " * 12) for line in rest)


def test_without_a_terminal_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 9.0, 11.0, 12.0, 25.0])
    monkeypatch.setattr(terminal_module, "monotonic", lambda: next(clock))
    written = io.StringIO()
    with page_progress(None, written) as start:
        report = start("a\x1b[31m.pdf")
        for done in (1, 200, 300, 400):
            report(done, 2000)
    assert written.getvalue().splitlines() == [
        "a\\x1b[31m.pdf: 200 of 2,000",
        "a\\x1b[31m.pdf: 400 of 2,000",
    ]


def test_without_a_terminal_a_step_that_takes_long_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal_module, "SECONDS_BETWEEN_LINES", 0.02)
    written = io.StringIO()
    with progress_bars(None, stream=written) as bars:
        bars.add_task("scanner", total=2)
        end = time.monotonic() + 10
        while written.getvalue().count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.01)
    first, second, *_ = written.getvalue().splitlines()
    assert first == "scanner: 0 of 2"
    assert second.startswith("scanner: 0 of 2, after ")
    told = written.getvalue()
    time.sleep(0.1)
    assert written.getvalue() == told, "the thread has ended"


def test_progress_is_shown_and_escapes_names(terminal: io.StringIO) -> None:
    with page_progress(True, terminal) as start:
        report = start("[red]evil\x1b[31m.txt")
        report(1, 4)
        report(4, 4)
    shown = terminal.getvalue()
    assert "[red]evil\\x1b[31m.txt" in shown
    assert "4/4" in shown
    with page_progress(False, silent := io.StringIO()) as start:
        start("a.txt")(1, 4)
    assert silent.getvalue() == ""
