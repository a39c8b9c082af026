"""A comparison as text in a pipe and in a terminal."""

import io
import re

from spscanner_rag.apps.compare import Comparison, compare
from spscanner_rag.apps.compare.terminal import SHOWN, render_text, retriever_progress
from tests.apps.compare.fakes import FIRST, LAST
from tests.fakes import words


def in_terminal(
    text: str, top_k: int = 2, name: str = "first", path: str = "a.txt"
) -> Comparison:
    scorers = {name: FIRST, "last": LAST}
    return compare(
        "Who?",
        text,
        scorers,
        top_k=top_k,
        evidence=[(0, 3)],
        count_tokens=words,
        path=path,
    )


def test_a_pipe_gets_one_line_a_pick() -> None:
    comparison = in_terminal(
        "One is here. Two is there.\nThree is gone. Four came back."
    )
    lines = render_text([comparison], io.StringIO()).splitlines()
    assert lines[0] == "a.txt 57 characters, tokens as counted by the counter given"
    assert (
        lines[1].split()
        == "retriever picks of units only it evidence tokens seconds".split()
    )
    assert lines[2].split()[:-1] == "first 2 4 2 1 of 1 6".split()
    assert lines[3].split()[:-1] == "last 2 4 2 0 of 1 6".split()
    assert lines[4:] == [
        "",
        "first",
        "1:1  only  evidence",
        "  1  0.500  One is here.",
        "1:14  only",
        "  2  0.269  Two is there.",
        "",
        "last",
        "2:16  only",
        "  1  0.953  Four came back.",
        "2:1  only",
        "  2  0.881  Three is gone.",
        "",
        "evidence 1:1  found by first  missed by last",
        "            One is here.",
    ]


def test_unequal_numbers_of_picks_and_long_ones() -> None:
    text = "One is here. " + "Many words are in this one, " * 40 + "and it ends."
    comparison = compare(
        "Who?", text, {"a": FIRST, "b": LAST}, top_k=[1, 2], count_tokens=len
    )
    shown = render_text([comparison], io.StringIO())
    longest = max(
        comparison.retrievals[1].picks, key=lambda pick: pick.end - pick.start
    )
    assert longest.end - longest.start > SHOWN
    assert str(longest.end - longest.start) in re.findall(r"\[(\d+)", shown)


def test_a_terminal_gets_colours_and_its_own_width(terminal: io.StringIO) -> None:
    comparison = in_terminal(
        "One is here. Two is there. " + "Many words are in this sentence " * 9 + "."
    )
    shown = render_text([comparison], terminal)
    assert "\x1b[" in shown
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert max(map(len, plain.splitlines())) <= 60


def test_progress_names_the_retriever_at_work(terminal: io.StringIO) -> None:
    with retriever_progress(True, 2, terminal) as started:
        started("[red]evil\x1b[31m")
        started("bm25")
    shown = terminal.getvalue()
    assert "[red]evil\\x1b[31m" in shown
    assert "1/2" in shown
    with retriever_progress(False, 2, silent := io.StringIO()) as started:
        started("bm25")
    assert silent.getvalue() == ""
