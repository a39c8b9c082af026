import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.baselines import BM25, Cascade, Dense, Hybrid
from spscanner_rag.baselines.text_cache import TextCache
from spscanner_rag.baselines.unit_kinds import segmenter_of
from spscanner_rag.files.readers.markdown import read_markdown
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.baselines.conftest import letters
from tests.conftest import SMALL_TEXT

UNITS = [Unit(0, 1, "a")]


def test_the_least_recently_used_is_forgotten() -> None:
    made: list[str] = []
    kept: TextCache[str] = TextCache(2)

    def get(text: str) -> str:
        return kept.get(text, UNITS, lambda: made.append(text) or text.upper())  # type: ignore[func-returns-value]

    assert [get(text) for text in ("a", "b", "a", "c", "a", "b")] == [
        "A",
        "B",
        "A",
        "C",
        "A",
        "B",
    ]
    assert made == ["a", "b", "c", "b"]


def test_equal_texts_are_one_and_other_units_another_and_what_fails_is_not_kept() -> (
    None
):
    kept: TextCache[int] = TextCache(4)
    with pytest.raises(ZeroDivisionError):
        kept.get("abab", UNITS, lambda: 1 // 0)
    assert kept.get("ab" * 2, UNITS, lambda: 1) == 1
    assert kept.get("abab", list(UNITS), lambda: 2) == 1
    assert kept.get("abab", [Unit(0, 2, "ab")], lambda: 3) == 3


def test_pickled_without_what_it_keeps() -> None:
    kept: TextCache[int] = TextCache(3)
    kept.get("a", UNITS, lambda: 1)
    again = pickle.loads(pickle.dumps(kept))
    assert again.keep_texts == 3
    assert again.get("a", UNITS, lambda: 2) == 2
    with pytest.raises(ValueError, match="at least 1"):
        TextCache(0)


@pytest.mark.parametrize(
    ("combined", "own"),
    [
        (lambda scanner: Hybrid([BM25(), scanner]), True),
        (lambda scanner: Hybrid([BM25(), scanner], unit="sentence"), True),
        (lambda scanner: Cascade(BM25(), scanner), True),
        (lambda scanner: Cascade(scanner, BM25()), True),
        (
            lambda scanner: Cascade(BM25(), Hybrid([BM25(), scanner]), unit="sentence"),
            True,
        ),
        (lambda scanner: Hybrid([BM25("chunk"), scanner]), False),
        (lambda scanner: Hybrid([scanner, BM25()], unit="passage"), False),
        (lambda scanner: Hybrid([BM25(), scanner], unit=SentenceSegmenter()), False),
        (lambda scanner: Cascade(BM25(), scanner, unit="chunk:50"), False),
    ],
)
def test_a_scanner_cuts_its_own_sentences_wherever_it_stands(
    combined: Callable[[Scanner], Scorer], own: bool, windowed_checkpoint: Path
) -> None:
    scanner = Scanner.from_pretrained(
        windowed_checkpoint, device="cpu", dtype="float32"
    )
    units = combined(scanner).units_of(SMALL_TEXT)
    assert (units == scanner.units_of(SMALL_TEXT)) is own
    assert scanner.units_of(SMALL_TEXT) != SentenceSegmenter().segment(SMALL_TEXT)


KINDS = ["chunk:1", "chunk:3", "chunk", "passage", "document"]
TEXTS = st.text(st.sampled_from("ab.\n\r\t \u00a0\u2028é\ud800🦦"), max_size=60)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.sampled_from(KINDS))
def test_units_are_the_text(text: str, unit: Any) -> None:
    units = segmenter_of(unit).segment(text)
    assert "".join(unit.model_text for unit in units) == (text if text.strip() else "")
    end = 0
    for unit in units:
        assert end <= unit.start < unit.end <= len(text)
        assert not text[end : unit.start].strip()
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        end = unit.end
    assert not text[end:].strip()


def test_passages_end_at_blank_lines() -> None:
    text = "One\nline. \n\n Two. \r\n\t\r\nThree."
    passages = [
        text[unit.start : unit.end] for unit in segmenter_of("passage").segment(text)
    ]
    assert passages == ["One\nline.", "Two.", "Three."]


@pytest.mark.parametrize(
    ("unit", "units"),
    [
        ("chunk:1", 5),
        ("chunk:2", 3),
        ("chunk:300", 1),
        ("chunk", 1),
        ("document", 1),
        ("sentence", 1),
    ],
)
def test_chunks_of_so_many_words(unit: Any, units: int) -> None:
    segmenter = segmenter_of(unit)
    assert len(segmenter.segment("one two  three\nfour five")) == units
    assert segmenter.name == ("chunk" if unit == "chunk:300" else unit)
    assert segmenter_of(segmenter) is segmenter
    assert isinstance(segmenter, SentenceSegmenter) == (unit == "sentence")


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ("page", "expected one of sentence, chunk, passage, document, chunk:WORDS"),
        ("chunk:0", "expected one of"),
        ("chunk:-1", "expected one of"),
        ("chunk:many", "expected one of"),
        ("chunk:99999999", "expected one of"),
    ],
)
def test_unknown_units_are_refused(unit: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        segmenter_of(unit)


TABLES = read_markdown(
    b"""# Prices

It rained in the harbour.

| town | toll |
|------|------|
| Lyme | 7    |
| Bath | 9    |

## Guests

He came in spring.

| town | guests |
|------|--------|
| Lyme | 8      |
""",
)
ROWS = BM25().units_of(TABLES.text, TABLES.blocks)
READ = [
    "# Prices It rained in the harbour.",
    "| town | toll | |------|------|",
    "| town | toll | | Lyme | 7 |",
    "| town | toll | | Bath | 9 |",
    "## Guests He came in spring.",
    "| town | guests | |------|--------|",
    "| town | guests | | Lyme | 8 |",
]


def words(text: str) -> list[str]:
    return [
        word for word in text.replace("-", " ").split() if any(map(str.isalnum, word))
    ]


def test_a_unit_has_its_headings_and_its_header() -> None:
    assert [words(unit.text_with_headings(TABLES.text)) for unit in ROWS] == list(
        map(words, READ)
    )
    assert Unit(0, 1, "").text_with_headings("ab") == "a"


def test_rows_are_found_by_the_header_of_their_table() -> None:
    scores = BM25().score_units("Which toll is paid?", TABLES.text, ROWS)
    assert (scores > -1).tolist() == [False, True, True, True, *[False] * 3]
    assert list(map(words, Dense(letters).passages_of(TABLES.text, ROWS))) == list(
        map(words, READ)
    )
