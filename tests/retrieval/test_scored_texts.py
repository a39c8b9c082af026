"""Joined texts scored: like one scan, limits over several, no match over a break."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.retrieval import Piece, join_pieces
from spscanner_rag.retrieval.hits import Hit
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import ScanCancelled, Scorer, UnitScores, never
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.units import Unit
from tests.fakes import EQUAL, ScoredBy
from tests.retrieval.searching import best_first, joined, search

QUERY = "Who signed the treaty?"


STORY = """\
The keeper wrote the date in his book. He signed the treaty on 14 May 1911, and the \
captain left.
"Who signed it?" she asked; nobody answered. Dr. Smith's report was 400 pages long!

Why did they leave the island? Because the well was dry, and because the winter had \
been long.
The bell rang twice. Then the rain began. The council had ordered a report in 1908.
"""


class Words(Scorer):
    """Cuts at full stops; the number in a sentence, such as "a 3.", is its logit."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, list[Unit]]] = []

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        units, start = [], 0
        while (stop := text.find(".", start)) >= 0:
            first = start + len(text[start:stop]) - len(text[start:stop].lstrip())
            units.append(Unit(first, stop + 1, text[start : stop + 1]))
            start = stop + 1
        return units

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        self.asked.append((query, text, list(units)))
        return np.array(
            [
                float(text[unit.start : unit.end].rstrip(".").split()[-1])
                for unit in units
            ]
        )


def found(hits: Sequence[Hit]) -> list[str]:
    return [hit.text for hit in hits]


SELECTIONS = st.fixed_dictionaries(
    {
        "top_k": st.none() | st.integers(1, 12) | st.sampled_from([0.1, 0.9]),
        "threshold": st.none() | st.floats(0, 1),
        "max_tokens": st.none() | st.integers(1, 200),
        "count_tokens": st.sampled_from([None, len]),
        "context": st.integers(0, 3),
        "order": st.sampled_from(["document", "score"]),
        "merge": st.booleans(),
    }
)


def check_as_scanned(scanner: Scanner, text: str, arguments: dict[str, Any]) -> None:
    hits = search(scanner, QUERY, joined([text]), best_first(**arguments))
    result = scanner.scan(QUERY, text)
    passages = result.select(**arguments)
    assert [(hit.text, hit.score) for hit in hits] == [
        (p.text, p.score) for p in passages
    ]
    for hit, passage in zip(hits, passages, strict=True):
        span = (passage.start, passage.end)
        assert hit.text_number == 0
        assert hit.place == (0, *span, 0, *span)
        assert hit.logit == max(
            s.logit for s in result.sentences if span[0] <= s.start < span[1]
        )


@settings(max_examples=30)
@given(arguments=SELECTIONS)
def test_one_document_is_selected_as_by_a_scan(
    tiny_scanner: Scanner, arguments: dict[str, Any]
) -> None:
    check_as_scanned(tiny_scanner, STORY, arguments)


@pytest.fixture(scope="module")
def windowed(windowed_checkpoint: Path) -> Scanner:
    return Scanner.from_pretrained(
        windowed_checkpoint, device="cpu", dtype="float32", local_files_only=True
    )


@pytest.mark.parametrize("name", ["tiny_scanner", "windowed"])
def test_runs_are_cut_and_read_apart(name: str, request: pytest.FixtureRequest) -> None:
    scanner: Scanner = request.getfixturevalue(name)
    pages = ["The keeper signed the", "treaty on a day", "in May."]
    pieces = [
        Piece(text=p, key=p, source=p, start=0, group="file", position=n)
        for n, p in enumerate(pages)
    ]
    hits = search(
        scanner,
        QUERY,
        join_pieces(pieces),
        best_first(order="document", merge=True, context=2),
    )
    assert found(hits) == pages
    assert [hit.place.piece_number for hit in hits] == [0, 1, 2]
    asked: list[list[Unit]] = []

    class Spy(Scorer):
        def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
            return scanner.units_of(text, blocks)

        def score_units(
            self, query: str, text: str, units: Sequence[Unit]
        ) -> list[float]:
            asked.append(list(units))
            return [0.0] * len(units)

    search(Spy(), QUERY, join_pieces(pieces), best_first())
    read_text = "".join(unit.model_text for unit in asked[0])
    assert (
        read_text.split() == " ".join(pages).split()
    )  # words of two pages are never joined


FIRST, SECOND = "a 1. b 9. c 2. d 8.", "e 7. f 3. g 10. h 0."


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(-5, 5), max_size=6), min_size=1, max_size=6),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 4),
    st.none() | st.just(0.5),
    st.integers(1, 4),
)
def test_limits(
    logits: list[list[int]],
    top_k: int | None,
    per_text: int | None,
    threshold: float | None,
    batch_size: int,
) -> None:
    documents = [
        " ".join(f"w{i} {logit}." for i, logit in enumerate(row)) for row in logits
    ]
    ranked = sorted(
        (-logit, number, i)
        for number, row in enumerate(logits)
        for i, logit in enumerate(row)
    )
    taken: dict[int, int] = {}
    expected = []
    for logit, number, i in ranked:
        if threshold is not None and logit > 0:  # negated for sorting
            break
        if (per_text is None or taken.get(number, 0) < per_text) and (
            top_k is None or len(expected) < top_k
        ):
            taken[number] = taken.get(number, 0) + 1
            expected.append((number, f"w{i} {-logit}."))
    choose = best_first(top_k=top_k, top_k_per_text=per_text, threshold=threshold)
    hits = search(Words(), QUERY, joined(documents), choose, batch_size=batch_size)
    assert [(hit.text_number, hit.text) for hit in hits] == expected
    for hit in hits:
        assert (
            documents[hit.text_number][hit.place.source_start : hit.place.source_end]
            == hit.text
        )


def test_a_budget_needs_a_counter_before_anything_is_scanned() -> None:
    never = ScoredBy(lambda *_: pytest.fail("scanned"))
    with pytest.raises(
        ValueError, match="max_tokens: got 5, but ScoredBy counts no tokens"
    ):
        search(never, QUERY, joined([STORY]), best_first(max_tokens=5))
    with pytest.raises(ValueError, match="max_tokens"):
        search(never, QUERY, [], best_first(max_tokens=5))
    assert (
        search(
            EQUAL, QUERY, joined([STORY]), best_first(max_tokens=1, count_tokens=len)
        )
        == []
    )


def test_cancelled_between_batches_that_do_not_ask() -> None:
    done: list[int] = []

    class Deaf(Words):
        def score_units_many(
            self, requests: Any, *, collection: Any = None, cancelled: Any = never
        ) -> list[UnitScores]:
            done.append(len(requests))
            empty = [np.zeros(len(units), np.float32) for _, _, units in requests]
            return [UnitScores(logits) for logits in empty]

    with pytest.raises(ScanCancelled):
        search(
            Deaf(),
            QUERY,
            joined([FIRST, FIRST]),
            best_first(),
            batch_size=1,
            cancelled=lambda: bool(done),
        )
    assert done == [1]
