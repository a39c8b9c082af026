"""Pieces joined and mapped back: documents, chunks, overlaps, gaps, sources."""

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.retrieval import Piece, join_pieces
from spscanner_rag.retrieval.chunk_joining import LARGEST_WHITE_GAP
from spscanner_rag.retrieval.joined_text import RUN_SEPARATOR, JoinedText, Place, Run
from spscanner_rag.retrieval.joined_text_builder import JoinedTextBuilder
from tests.fakes import squeezed

SOURCE = "doc"


def piece(text: str, start: int | None = None, **options: Any) -> Piece:
    options = {"key": f"{start}:{text[:20]}", "source": SOURCE} | options
    return Piece(text=text, start=start, **options)


def joined(pieces: Sequence[Piece], source: str | None = None) -> JoinedText:
    """The only text, from pieces of one source."""
    (text,) = join_pieces(pieces, None if source is None else {SOURCE: source})
    return text


def texts_of(text: JoinedText) -> list[str]:
    return [text.text[run.start : run.end] for run in text.runs]


def check_shape(text: JoinedText, pieces: Sequence[Piece]) -> None:
    """Runs and separators make the text, and pieces lie at their stated places."""
    assert RUN_SEPARATOR.join(texts_of(text)) == text.text
    assert list(text.placed) == sorted(text.placed)
    end = -len(RUN_SEPARATOR)
    for run in text.runs:
        assert run.start == end + len(RUN_SEPARATOR)
        assert run.end > run.start
        end = run.end
    for placed in text.placed:
        assert any(
            run.start <= placed.start and placed.end <= run.end for run in text.runs
        )
        stands = text.text[placed.start : placed.end]
        wanted = pieces[placed.number].text
        assert (
            stands == wanted
            if placed.exact
            else stands.split() != [] and squeezed(stands) == squeezed(wanted)
        )


def spans_of(text: JoinedText, seed: int, many: int = 30) -> list[tuple[int, int]]:
    """Random spans, each within one run and touching a piece."""
    generator = random.Random(seed)
    found = []
    for _ in range(many if text.runs else 0):
        run = generator.choice(text.runs)
        start = generator.randrange(run.start, run.end)
        end = min(run.end, start + generator.choice([1, 2, 10, 60, 1000]))
        assert text.touches(start, end) == any(
            p.start < end and start < p.end for p in text.placed
        )
        if text.touches(start, end):
            found.append((start, end))
    return found


def check_places(
    text: JoinedText,
    pieces: Sequence[Piece],
    sources: Mapping[Hashable, str],
    seed: int,
) -> list[Place]:
    """Every place indexes the piece and the source, except in white space of gaps."""
    places = []
    for start, end in spans_of(text, seed):
        place = text.place(start, end)
        places.append(place)
        assert all(
            type(number) is int
            for number in place
            if number is not None and number != place.source
        )
        assert (place.piece_start is None) == (place.piece_end is None)
        assert (place.source_start is None) == (place.source_end is None)
        assert place.source == pieces[place.piece_number].source
        span = text.text[start:end]
        if place.piece_start is not None:
            assert (
                pieces[place.piece_number].text[place.piece_start : place.piece_end]
                == span
            )
        if place.source_start is not None:
            assert place.source_start >= 0
            stands = sources[place.source][place.source_start : place.source_end]
            assert len(stands) == len(span)
            for number, (got, wanted) in enumerate(zip(span, stands, strict=True)):
                assert got == wanted or not text.touches(
                    start + number, start + number + 1
                )
    return places


WORDS = st.one_of(
    st.text(
        st.characters(), max_size=12
    ),  # any code points, lone surrogates among them
    st.sampled_from(
        [
            "The keeper signed it. ",
            *("\r\n", "\n\n", " ", "\u3000\x85"),
            *("é" * 3, "👩‍👩‍👧‍👦", "\ud800", "x"),
            *("ab" * 20, "-" * 40),
        ]
    ),
)


DOCUMENTS = st.lists(WORDS, max_size=25).map("".join)


SEEDS = st.integers(0, 2**32)


def cut(document: str, size: int, overlap: int) -> list[tuple[int, str]]:
    """Chunks that cover a document."""
    step = max(1, size - overlap)
    return [
        (start, document[start : start + size])
        for start in range(0, max(1, len(document)), step)
    ]


@settings(max_examples=40)
@given(DOCUMENTS, st.integers(1, 80), st.integers(0, 60), st.booleans(), SEEDS)
def test_covering_chunks_are_it(
    document: str, size: int, overlap: int, whole_too: bool, seed: int
) -> None:
    chunks = cut(document, size, overlap)
    if whole_too:
        chunks.append((0, document))
    chunks += random.Random(seed).choices(chunks, k=3)  # some chunks a second time
    random.Random(seed).shuffle(chunks)
    pieces = [piece(text, start) for start, text in chunks]
    text = joined(pieces)
    assert text.text == document
    assert text.runs == ((Run(0, len(document), SOURCE, 0),) if document else ())
    check_shape(text, pieces)
    for place in check_places(text, pieces, {SOURCE: document}, seed):
        assert place.source_start is not None
        assert place.piece_start is not None or not whole_too


@st.composite
def any_pieces(draw: st.DrawFn) -> tuple[str, list[Piece]]:
    """Stretches of a document.

    Some offsets are unknown, and links are right, wrong or circular.
    """
    document = draw(DOCUMENTS)
    spans = draw(
        st.lists(
            st.tuples(st.integers(0, len(document)), st.integers(0, 90), st.booleans()),
            max_size=12,
        )
    )
    keys = st.none() | st.sampled_from([str(number) for number in range(14)])
    return document, [
        piece(
            document[start : start + length],
            start if known else None,
            key=str(number),
            previous=draw(keys),
            next=draw(keys),
        )
        for number, (start, length, known) in enumerate(spans)
    ]


@settings(max_examples=40)
@given(any_pieces(), SEEDS)
def test_spans_are_exact_or_none(
    given_pieces: tuple[str, list[Piece]], seed: int
) -> None:
    document, pieces = given_pieces
    for text in join_pieces(pieces):
        check_shape(text, pieces)
        check_places(text, pieces, {SOURCE: document}, seed)
        standing = {placed.number for placed in text.placed}
        for number, one in enumerate(pieces):
            assert number in standing or not one.text.strip()
        for placed in text.placed:
            if (
                pieces[placed.number].start is not None
                and placed.end - placed.start > 0
            ):
                place = text.place(placed.start, placed.end)
                assert place.source_start is not None  # a right offset is never lost


@settings(max_examples=40)
@given(any_pieces(), SEEDS)
def test_a_source_at_hand_is_read_as_it_is(
    given_pieces: tuple[str, list[Piece]], seed: int
) -> None:
    document, pieces = given_pieces
    for text in join_pieces(pieces, {SOURCE: document}):
        assert text.text == document
        check_shape(text, pieces)
        for place in check_places(text, pieces, {SOURCE: document}, seed):
            assert place.source_start is not None
        for placed in text.placed:
            start = pieces[placed.number].start
            assert placed.exact
            assert start is None or placed.start == start


def test_where_two_contradict_each_other_no_offset_counts() -> None:
    text = joined(
        [
            piece("The captain left at dawn.", 0),
            piece("Nobody signed.", 10),
            piece("A well.", 500),
        ]
    )
    assert texts_of(text) == ["The captain left at dawn.", "Nobody signed.", "A well."]
    places = [text.place(run.start, run.end) for run in text.runs]
    assert [place.piece_number for place in places] == [0, 1, 2]
    assert [place.piece_start for place in places] == [0, 0, 0]
    assert [place.source_start for place in places] == [None, None, None]


@pytest.mark.parametrize(
    ("gap", "between"),
    [
        (0, ""),
        (1, " "),
        (2, "\n\n"),
        (LARGEST_WHITE_GAP, "\n" * LARGEST_WHITE_GAP),
        (LARGEST_WHITE_GAP + 1, None),
        (10**9, None),
    ],
)
def test_gaps_up_to_a_length_are_white_space(gap: int, between: str | None) -> None:
    text = joined([piece("One.", 7), piece("Two.", 11 + gap)])
    if between is None:
        assert texts_of(text) == ["One.", "Two."]
        assert [run.source_start for run in text.runs] == [7, 11 + gap]
    else:
        assert text.text == f"One.{between}Two."
        assert text.runs == (Run(0, 8 + gap, SOURCE, 7),)
        assert text.place(4 + gap, 8 + gap)[1:] == (0, 4, SOURCE, 11 + gap, 15 + gap)
        assert text.place(0, 8 + gap)[1:] == (None, None, SOURCE, 7, 15 + gap)


@pytest.mark.parametrize("sources", [{}, {SOURCE: ""}, {SOURCE: " \n"}])
def test_nothing_and_white_space(sources: dict[Hashable, str]) -> None:
    assert join_pieces([], sources) == []
    for pieces in (
        [piece("", 0)],
        [piece("")],
        [piece(""), piece("", 3), piece("", 900)],
    ):
        (text,) = join_pieces(pieces, sources)
        assert text.text == sources.get(SOURCE, "")
        assert text.placed == ()
        assert not text.touches(0, 10**6)
    pieces = [piece("One.", 0), piece("\n\n", 4), piece("Two.", 6), piece(" \n")]
    (text,) = join_pieces(pieces)
    assert text.text == "One.\n\nTwo."


def test_numpy_offsets_come_out_as_plain_integers() -> None:
    pieces = [piece("One.", np.int64(3)), piece("Two.", np.int32(7))]
    place = joined(pieces).place(4, 8)
    assert place == (1, 0, 4, SOURCE, 7, 11)
    assert {type(number) for number in place if number != SOURCE} == {int}
    with pytest.raises(TypeError):
        piece("One.", 3.0)


def test_groups_and_positions() -> None:
    pieces = [
        piece("Page ten.", 0, source="p10", group="file", position=10),
        piece("Alone.", 0, source="other"),
        piece("wo.", 6, source="p2", group="file", position=2.0),
        piece("Page two.", 0, source="p2", group="file", position=2.0),
        piece("File alone.", 0, source="file"),  # a source with the name of a group
    ]
    texts = join_pieces(pieces)
    assert [texts_of(text) for text in texts] == [
        ["Page two.", "Page ten."],
        ["Alone."],
        ["File alone."],
    ]
    file = texts[0]
    at = file.text.index("ten")
    assert file.place(at, at + 3) == Place(0, 5, 8, "p10", 5, 8)
    unnumbered = [
        replace(one, position=None) if one.position == 2.0 else one for one in pieces
    ]
    assert texts_of(join_pieces(unnumbered)[0]) == ["Page ten.", "Page two."]


FACTS = [
    f"Barge number {n} carried {7 * n + 30} casks of {w} oil."
    for n, w in enumerate(["lamp", "fish", "nut"] * 6)
]


LEDGER = " ".join(FACTS)


def stretch(first: int, last: int) -> str:
    """Some sentences of the ledger."""
    return " ".join(FACTS[first:last])


def at(first: int, last: int, **options: Any) -> Piece:
    """The same, as a piece that knows its place."""
    return piece(stretch(first, last), LEDGER.index(FACTS[first]), **options)


def loose(first: int, last: int, **options: Any) -> Piece:
    """The same, without a place."""
    return piece(stretch(first, last), key=f"{first}-{last}", **options)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [at(0, 4), loose(3, 7), at(6, 10), loose(9, 13), at(12, 16)],
            id="overlapping",
        ),
        pytest.param([loose(0, 4), at(3, 7), loose(6, 10)], id="before and after"),
        pytest.param(
            [at(0, 6), at(6, 12), *(loose(n, n + 1) for n in range(12))],
            id="parts of known ones",
        ),
        pytest.param(
            [at(0, 6), at(6, 12), at(2, 3), loose(2, 3), loose(2, 3, position=1)],
            id="twice",
        ),
        pytest.param(
            [loose(0, 4), loose(0, 4, position=1), loose(3, 7)],
            id="twice without a place",
        ),
    ],
)
def test_what_pieces_without_a_place_share_is_read_once(
    pieces: list[Piece], seed: int | None
) -> None:
    pieces = list(pieces)
    if seed is not None:
        random.Random(seed).shuffle(pieces)
    text = joined(pieces)
    check_shape(text, pieces)
    check_places(text, pieces, {SOURCE: LEDGER}, 0)
    covered = [fact for fact in FACTS if any(fact in one.text for one in pieces)]
    assert sorted(text.text.count(fact) for fact in covered) == [1] * len(covered)
    assert {placed.number for placed in text.placed} == set(range(len(pieces)))
    for one in pieces:
        if one.start is not None:
            begin = text.text.index(one.text)
            assert text.place(begin, begin + len(one.text)).source_start == one.start


def test_equal_pieces_that_are_linked_are_two() -> None:
    row = "Nothing was carried on this day."
    pieces = [
        piece(text, key=str(n), previous=str(n - 1), next=str(n + 1))
        for n, text in enumerate([FACTS[0], row, FACTS[1], row])
    ]
    text = joined(pieces)
    check_shape(text, pieces)
    assert text.text.count(row) == 2


def test_a_source_at_hand_and_what_does_not_stand_in_it() -> None:
    source = "The  well\nwas dry.\n\nThe bell rang twice."
    pieces = [
        piece("The bell rang twice.", 999),  # beyond the end
        piece("The well was dry.", 0),  # white space normalized
        piece("An older version of it."),
        piece("  "),
    ]
    text = joined(pieces, source)
    assert texts_of(text) == [source, "An older version of it."]
    assert text.place(0, 18) == Place(1, None, None, SOURCE, 0, 18)
    assert text.place(20, 40) == Place(0, 0, 20, SOURCE, 20, 40)
    assert text.place(42, 50) == Place(2, 0, 8, SOURCE, None, None)
    assert joined(pieces[2:3], "").text == "An older version of it."


def test_equal_chunks_stand_each_at_its_own_place() -> None:
    row = "| yes | no |\n"
    source = "Head\n" + row * 3 + "Foot\n" + row
    text = joined([piece(row, key=str(number)) for number in range(4)], source)
    assert [placed.start for placed in text.placed] == [5, 18, 31, 49]
    assert sorted(placed.number for placed in text.placed) == [0, 1, 2, 3]
    with_offset = joined([piece(row, 31), piece("yes |  no |", 45)], source)
    assert [(p.start, p.exact) for p in with_offset.placed] == [(31, True), (51, False)]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("whole_too", [True, False])
def test_the_cost_of_many_pieces(
    monkeypatch: pytest.MonkeyPatch, known: bool, whole_too: bool
) -> None:
    """Copied characters and examined pieces grow only with the text."""
    copied = 0
    take = JoinedTextBuilder._slice

    def counted(self: JoinedTextBuilder, start: int, end: int) -> str:
        nonlocal copied
        text = take(self, start, end)
        copied += len(text)
        return text

    monkeypatch.setattr(JoinedTextBuilder, "_slice", counted)
    document = "".join(f"Sentence {number}. " for number in range(20_000))
    chunks = cut(document, 200, 50)
    if whole_too:
        chunks.insert(0, (0, document))
    pieces = [
        piece(text, start if known else None, key=str(n))
        for n, (start, text) in enumerate(chunks)
    ]
    text = joined(pieces)
    if known or not whole_too:
        assert text.text == document
    assert copied <= 3 * sum(len(one.text) for one in pieces)
    near = (
        len(text._near(start, start + 20))
        for start in range(0, len(text.text) - 20, 20)
    )
    assert whole_too or sum(near) <= len(text.text)


@pytest.mark.parametrize("largest", [10**10, 1])
def test_chunks_of_chunks_are_read_where_the_larger_have_them(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spscanner_rag.retrieval.chunk_joining.LARGEST_SEARCH", largest)
    text = " ".join(f"Fact {number} is said once." for number in range(20))
    larger = [piece(text[:240], 0), piece(text[240:], 240)]
    smaller = [
        piece(each.text[start : start + 60], start)
        for each in larger
        for start in (0, 60, 120)
    ]
    found = joined([*smaller, *larger])
    if largest == 1:  # too many to search: no offset counts, and nothing is lost
        assert all(each.text in found.text for each in (*smaller, *larger))
        return
    assert found.text == text
    assert (found.place(240, 250).source_start, len(found.runs)) == (240, 1)
