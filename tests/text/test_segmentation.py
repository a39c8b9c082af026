"""Sentences: exact spans of any text, nothing lost, nothing repeated."""

import sys
from contextlib import nullcontext
from typing import Any

import pytest
import sentencex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spscanner_rag.text.segmentation import SentenceSegmenter, Unit
from tests.fakes import squeezed

HARD_PARTS = [
    "A cat sat. ", "Dr. ", "e.g. ", "2.1 ", "\n3. ", "“Why?” ", '"No." ', "(so. ", "…",
    ".", ",", "a", "é",
    "e\u0301",
    " ", "  ", "\t", "\n", "\n\n", "\r\n", "\r\n\r\n", "\n \n", "\x0b", "\x0c", "\x1c",
    "\x85", "\xa0",
    "\u2028",
    "\u3000", "\u200b", "\u200d", "\ufeff", "\u202e", "\x00", "\ud800", "\udfff", "😀",
    "👩\u200d👩\u200d👧",
    "🇩🇪", "👍🏽",
    "שלום. ", "ثم ذهب؟ ", "東京。", "नमस्ते। ", "각", "ᄀ\u1161\u11a8", "\u0301" * 40,
    "x" * 90, " " * 70,
    "so, ", "so; ", ",;", "word ", ".) ", '." ', "! ", "\u2003", "x" * 1100,
    "five words are in here " * 11,
]  # fmt: skip
any_text = st.one_of(
    st.text(st.characters(codec=None), max_size=60),
    st.lists(st.sampled_from(HARD_PARTS), max_size=60).map("".join),
)


def assert_exact(text: str, units: list[Unit], *, reads_all: bool = True) -> None:
    """Spans are trimmed, ordered and disjoint, and hold every visible character.

    That is also what the model reads. Joined they are the text if white space is read
    as it is.
    """
    position = 0
    for unit in units:
        span = text[unit.start : unit.end]
        assert position <= unit.start < unit.end <= len(text)
        assert span == span.strip()
        assert not text[position : unit.start].strip()
        assert squeezed(unit.model_text) == squeezed(span)
        position = unit.end
    assert not text[position:].strip()
    if units and reads_all:
        assert "".join(unit.model_text for unit in units) == text


def sentences(text: str, **options: int) -> list[str]:
    return [
        text[unit.start : unit.end]
        for unit in SentenceSegmenter(**options).segment(text)
    ]


@settings(max_examples=300)
@given(any_text, st.sampled_from([16, 100, 1000]))
@example(
    "“ x. \u3000J.", 1000
)  # sentencex 1.0.32 panics on white space of several bytes
def test_spans_are_exact_whatever_the_text(text: str, limit: int) -> None:
    units = SentenceSegmenter(max_characters=limit).segment(text)
    assert_exact(text, units)
    assert all(unit.end - unit.start <= limit for unit in units)


def test_sentences_of_plain_prose() -> None:
    text = (
        '  Dr. Smith paid 3.5 million, e.g. in rents. "Why?" she asked; nobody'
        " knew!\r\n\r\nThe rain began.  "
    )
    assert sentences(text) == [
        "Dr. Smith paid 3.5 million, e.g. in rents.",
        '"Why?" she asked; nobody knew!',
        "The rain began.",
    ]
    first, second, last = SentenceSegmenter().segment(text)
    assert first.model_text == "  Dr. Smith paid 3.5 million, e.g. in rents. "
    assert second.model_text.endswith("knew!\r\n\r\n")
    assert last.model_text == "The rain began.  "


def test_a_blank_line_ends_a_sentence_even_with_blanks_on_it() -> None:
    assert sentences("A heading\n \t \nThe text below it.") == [
        "A heading",
        "The text below it.",
    ]


@pytest.mark.parametrize("marker", ["2.", "2.1.", "3.)", "12.4.1."])
def test_a_list_marker_stays_with_its_sentence(marker: str) -> None:
    text = f"{marker} The tenant pays the rent. He pays it monthly."
    assert sentences(text) == [
        f"{marker} The tenant pays the rent.",
        "He pays it monthly.",
    ]
    assert sentences("The first ends\n" + text)[:2] == [
        "The first ends",
        f"{marker} The tenant pays the rent.",
    ]


@pytest.mark.parametrize("opening", ["“", '"', "(", "« ", "'til then "])
def test_a_mark_that_is_never_closed_does_not_swallow_the_document(
    opening: str,
) -> None:
    plain = [
        f"Sentence number {number} is here and is long enough." for number in range(100)
    ]
    found = sentences(opening + " ".join(plain))
    assert [sentence.lstrip(opening) for sentence in found] == [
        plain[0].lstrip(opening),
        *plain[1:],
    ]


def test_closing_marks_stay_with_the_sentence_they_close() -> None:
    inside = [
        "The bell rang twice and then the long rain began.",
        "Nobody in the whole town had heard it.",
    ]
    text = "(" + " ".join(inside * 15) + ") She left."
    found = sentences(text)
    assert found[-2:] == [inside[1] + ")", "She left."]
    quoted = [
        'He said "the bell rang twice in the night."',
        "She said “nobody in town had heard it.”",
    ]
    found = sentences("(" + " ".join(quoted * 20) + " So it was.) She left.")
    assert found[1:] == [*(quoted * 20)[1:], "So it was.)", "She left."]


@pytest.mark.parametrize(
    "filler",
    ["a", ".", "0", "é", "東", "word ", "word\n", "w. ", "? ", "“", "\ud800", "\u0301"],
)
def test_a_run_without_a_sentence_end_is_capped(filler: str) -> None:
    text = ("start " + filler * 60_000)[:60_000]
    units = SentenceSegmenter().segment(text)
    assert_exact(text, units)
    assert all(unit.end - unit.start <= 1000 for unit in units)
    assert len(units) <= 60_000 / 250 or filler == "w. "


@given(any_text)
def test_a_lone_surrogate_reads_as_a_replacement_character(text: str) -> None:
    plain = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    replaced = "".join(
        "\ufffd" if "\ud800" <= character <= "\udfff" else character
        for character in plain
    )
    spans = [unit[:2] for unit in SentenceSegmenter().segment(plain)]
    assert spans == [unit[:2] for unit in SentenceSegmenter().segment(replaced)]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that sentencex is given."""
    found: list[str] = []
    boundaries = sentencex.get_sentence_boundaries

    def watch(language: str, text: str) -> Any:
        found.append(text)
        return boundaries(language, text)

    monkeypatch.setattr(sentencex, "get_sentence_boundaries", watch)
    return found


@pytest.mark.parametrize(
    "mark",
    [
        "",
        ". ",
        ", ",
        '"',
        "“a",
        "? ",
        "(a. ",
        '" "',
        "\n1. ",
        "\r\n",
        "\n\n",
        "a ",
        "'. ",
    ],
)
def test_a_long_text_is_seen_in_pieces_and_never_many_times(
    mark: str, seen: list[str]
) -> None:
    sentence = f"It was {mark}said"
    if mark == "a ":
        sentence = mark
    text = sentence * (160_000 // len(sentence))
    assert_exact(text, SentenceSegmenter().segment(text))
    assert max(map(len, seen)) <= 8192
    # two passes (the second over long sentences only), each of which may read half of a
    # piece again
    assert sum(map(len, seen)) <= 4 * len(text) + 8192


@pytest.mark.parametrize("marks", ["“‘", "„“「”", "「‚’", '‹《。"', "« ", "“a. "])
def test_no_piece_has_many_quotation_marks(marks: str, seen: list[str]) -> None:
    """sentencex takes time proportional to the square of their number."""
    text = (marks * 30_000)[:30_000]
    assert_exact(text, SentenceSegmenter().segment(text))
    slow = set(marks) & set("“”‘’„「‚‹《«")
    assert max(sum(map(piece.count, slow)) for piece in seen) <= 1024


def test_what_is_called_between_pieces_may_stop() -> None:
    calls: list[int] = []

    def stop() -> None:
        calls.append(0)
        if len(calls) == 3:
            raise InterruptedError

    assert len(SentenceSegmenter().segment_in_parts("One. Two.", stop)) == 2
    assert not calls
    with pytest.raises(InterruptedError):
        SentenceSegmenter().segment_in_parts("x" * 100_000, stop)


@pytest.mark.parametrize("separator", [" ", "\n", "\n\n", "\r\n", "\xa0"])
def test_long_texts_are_read_in_pieces_without_a_trace(separator: str) -> None:
    expected = [
        f"Mr. Brown wrote sentence {number} of them{' again' * (number % 7)}."
        for number in range(3000)
    ]
    assert sentences(separator.join(expected)) == expected


class PanicException(BaseException):
    """Named as by pyo3."""


@pytest.mark.parametrize(
    ("error", "survived"), [(PanicException, True), (KeyboardInterrupt, False)]
)
def test_a_panic_only(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], survived: bool
) -> None:
    def fail(language: str, text: str) -> None:
        raise error

    monkeypatch.setattr(sentencex, "get_sentence_boundaries", fail)
    with nullcontext() if survived else pytest.raises(KeyboardInterrupt):
        assert sentences("The first one. And the second? Yes.") == [
            "The first one.",
            "And the second?",
            "Yes.",
        ]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for space in filter(str.isspace, map(chr, range(sys.maxunicode + 1))):
        SentenceSegmenter().segment(
            f"He met J.{space}K. Smith.{space}Then he left.{space}\n1.{space}A.{space}"
        )
    assert capfd.readouterr() == ("", "")


def test_the_language_is_used() -> None:
    text = "Siehe Abs. 3 der Verordnung. Er ging."
    count = {
        language: len(SentenceSegmenter(language).segment(text))
        for language in ("de", "en", "xx")
    }
    assert count == {
        "de": 2,
        "en": 3,
        "xx": 3,
    }  # "xx" is not a language, so the general rule applies


def test_settings_are_checked() -> None:
    for limit in (0, 15, 5000):
        with pytest.raises(
            ValueError, match=f"max_characters is {limit}, expected 16 to 4096"
        ):
            SentenceSegmenter(max_characters=limit)
    with pytest.raises(ValueError, match="language is empty"):
        SentenceSegmenter("")
