"""Pieces instead of sentences: which are kept, and what is left of them."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.results import Selection
from spscanner_rag.retrieval import Piece, join_pieces
from spscanner_rag.retrieval.pruning import GAP, pruned_text
from spscanner_rag.retrieval.selected_pieces import pieces_of_hits
from spscanner_rag.scorers import Scorer
from tests.retrieval.searching import best_first, search

TEXT = (
    "The well was dry. The bell rang twice.\n\nA ship came. It carried tea. Nobody knew"
    " why. They left."
)


class ByWord(Scorer):
    """The logit is the number of query words, and lower for later sentences."""

    def score_units(self, query: str, text: str, units: Sequence[Any]) -> Any:
        own = [text[unit.start : unit.end].split() for unit in units]
        return np.array(
            [
                sum(word in words for word in query.split()) - n / 1000
                for n, words in enumerate(own)
            ],
            np.float32,
        )


def piece(text: str, start: int | None, **options: Any) -> Piece:
    return Piece(
        **(
            {"text": text, "key": f"{start}:{text}", "source": "d", "start": start}
            | options
        )
    )


def kept(
    query: str,
    pieces: Sequence[Piece],
    sources: dict[Any, str] | None = None,
    **options: Any,
) -> list[tuple[int, str, float]]:
    """Number, pruned text and logit of the kept pieces."""
    texts = join_pieces(pieces, sources)
    hits = search(ByWord(), query, texts, best_first(**({"top_k": 2} | options)))
    return [
        (
            own.piece_number,
            pruned_text(pieces[own.piece_number].text, texts[own.text_number], own),
            round(own.best.logit, 3),
        )
        for own in pieces_of_hits(texts, hits)
    ]


def test_neighbours_keep_their_white_space_and_gaps_become_line_breaks() -> None:
    whole = [piece(TEXT, 0)]
    assert kept("bell ship", whole) == [
        (0, "The bell rang twice.\n\nA ship came.", 0.999)
    ]
    assert kept("well tea.", whole) == [
        (0, f"The well was dry.{GAP}It carried tea.", 1)
    ]
    assert kept("well tea.", whole, top_k=1, context=1) == [
        (0, "The well was dry. The bell rang twice.", 1)
    ]


def test_a_sentence_in_two_pieces_counts_for_both_and_is_kept_in_the_first() -> None:
    pieces = [piece(TEXT[:38], 0), piece(TEXT[18:52], 18), piece(TEXT[40:], 40)]
    assert kept("bell", pieces, top_k=1) == [
        (0, "The bell rang twice.", 0.999),
        (1, "", 0.999),
    ]
    texts = join_pieces(pieces)
    hits = search(ByWord(), "bell", texts, best_first(top_k=1))
    assert [own.spans for own in pieces_of_hits(texts, hits)] == [[(18, 38)], []]


def test_the_smallest_piece_is_kept_and_not_the_document_around_it() -> None:
    pieces = [piece(TEXT, 0), piece(TEXT[18:38], 18)]
    assert kept("bell tea.", pieces) == [
        (1, "The bell rang twice.", 0.999),
        (0, "It carried tea.", 0.997),
    ]


def test_a_piece_whose_white_space_differs_from_the_source() -> None:
    squeezed = "The bell rang twice. A ship came. It carried  tea."
    found = kept("bell tea.", [piece(squeezed, None)], {"d": TEXT})
    assert found == [(0, f"The bell rang twice.{GAP}It carried  tea.", 0.999)]


@st.composite
def cut_documents(draw: st.DrawFn) -> tuple[str, list[Piece]]:
    """A document cut into overlapping chunks, with or without offsets."""
    words = st.sampled_from(
        "The harbour bell. ship, x? (a) Dr. 東京 \n \n\n \ud800".split(" ")
    )
    document = " ".join(draw(st.lists(words, max_size=60)))
    known = draw(st.booleans())
    generator = random.Random(draw(st.integers(0, 2**32)))
    starts, ends = [0], [generator.randint(1, 60)]
    while ends[-1] < len(document):
        starts.append(
            max(starts[-1] + 1, ends[-1] - generator.choice([0, 0, 3, 20, 40]))
        )
        ends.append(max(ends[-1], starts[-1]) + generator.randint(1, 60))
    return document, [
        piece(
            document[start:end],
            start if known else None,
            key=str(number),
            next=str(number + 1),
        )
        for number, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


@settings(max_examples=60)
@given(cut_documents(), st.sampled_from([None, 1, 3]), st.integers(0, 1), st.booleans())
def test_what_is_kept_is_what_was_selected_and_no_more(
    cut: tuple[str, list[Piece]], top_k: int | None, context: int, merge: bool
) -> None:
    document, pieces = cut
    texts = join_pieces(pieces)
    choose = Selection(top_k=top_k, context=context, merge=merge, order="document")
    hits = search(ByWord(), "harbour bell.", texts, choose)
    found = pieces_of_hits(texts, hits)
    characters = 0
    for own in found:
        text = pieces[own.piece_number].text
        pruned = pruned_text(text, texts[own.text_number], own)
        check_parts(text, pruned)
        characters += len("".join(pruned.split()))
        assert own.best in hits
        if not own.spans:
            assert pruned == ""
    assert characters == sum(len("".join(hit.text.split())) for hit in hits)
    if top_k is None and pieces[0].start is not None:
        assert characters == len("".join(document.split()))  # none is lost or repeated


def check_parts(text: str, pruned: str) -> None:
    """The lines of a pruned text occur in the text, in order."""
    position = 0
    for line in filter(str.strip, pruned.split("\n")):
        position = text.find(line, position)
        assert position >= 0
        position += len(line)
