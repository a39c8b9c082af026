"""Retrievers on one question: what counts as a find, as found evidence, and as cost."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.compare import compare
from spscanner_rag.apps.compare.comparison import (
    MOST_PICKS,
    MOST_RETRIEVERS,
    NEXT_QUESTION,
    check_evidence_spans,
)
from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.files.documents import TextFile
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import PreparedText, UnitScores
from tests.apps.compare.fakes import prefers
from tests.fakes import ScoredBy, words

TEXT = (
    "One is here. Two is there. Three is gone. Four came back. Five stayed. Six left."
)
STARTS = [0, 13, 27, 42, 58, 71]


def test_of_an_empty_document_nothing_is_picked() -> None:
    nothing = compare(
        "Who?", " \n", {"a": prefers([0])}, count_tokens=words
    ).retrievals[0]
    assert (nothing.picks, nothing.units) == ((), 0)


def test_picks_are_ranked_and_their_spans_are_the_document_s() -> None:
    (retrieval,) = compare(
        "Who?", TEXT, {"a": prefers([42, 0])}, top_k=2, count_tokens=words
    ).retrievals
    assert [
        (pick.rank, pick.start, TEXT[pick.start : pick.end]) for pick in retrieval.picks
    ] == [
        (1, 42, "Four came back."),
        (2, 0, "One is here."),
    ]
    assert retrieval.picks[0].score == pytest.approx(0.5)
    assert (retrieval.units, retrieval.tokens, retrieval.only) == (
        6,
        6,
        0,
    )  # with only one, none is its own


def test_a_sentence_in_a_chunk_is_the_same_find() -> None:
    text = " ".join(
        f"Sentence number {number} stands here." for number in range(100)
    )  # 500 words, 2 chunks
    inside, outside = (
        text.index("Sentence number 3 "),
        text.index("Sentence number 90 "),
    )
    scorers = {"s": prefers([inside, outside]), "c": prefers([0], "chunk")}
    comparison = compare("Who?", text, scorers, top_k=[2, 1], count_tokens=words)
    sentences, chunks = comparison.retrievals
    assert {pick.start: pick.only for pick in sentences.picks} == {
        inside: False,
        outside: True,
    }
    assert [(pick.only, pick.tokens) for pick in chunks.picks] == [(False, 300)]
    assert (sentences.units, chunks.units) == (100, 2)


@given(st.lists(st.sets(st.sampled_from(STARTS), min_size=1), min_size=2, max_size=4))
def test_only_is_what_no_other_set_holds(chosen: list[set[int]]) -> None:
    scorers = {str(i): prefers(sorted(starts)) for i, starts in enumerate(chosen)}
    comparison = compare(
        "Who?", TEXT, scorers, top_k=[len(s) for s in chosen], count_tokens=words
    )
    for i, retrieval in enumerate(comparison.retrievals):
        others = set().union(*(starts for j, starts in enumerate(chosen) if j != i))
        assert {pick.start for pick in retrieval.picks if pick.only} == chosen[
            i
        ] - others
        assert {pick.start for pick in retrieval.picks} == chosen[i]


def test_evidence_is_found_by_whole_sentences_whatever_the_units() -> None:
    scorers = {"a": prefers([27]), "b": prefers([42]), "c": prefers([0], "document")}
    evidence = [(33, 35), (45, 50), (48, 56)]
    comparison = compare(
        "Who?", TEXT, scorers, top_k=1, evidence=evidence, count_tokens=words
    )
    assert comparison.evidence == ((33, 35), (45, 56))
    assert comparison.evidence_sentences == ((27, 41), (42, 57))
    assert [r.found for r in comparison.retrievals] == [
        (True, False),
        (False, True),
        (True, True),
    ]


def test_the_scanner_and_bm25_in_both_settings(tiny_scanner: Scanner) -> None:
    scorers = {"scanner": tiny_scanner, "bm25": BM25(), "bm25 (chunk)": BM25("chunk")}
    turns: list[str] = []
    comparison = compare(
        "Who came back?", TEXT, scorers, top_k=[3, 3, 1], started=turns.append
    )
    assert turns == ["scanner", "bm25", "bm25 (chunk)"]
    scanner, sentences, chunks = comparison.retrievals
    expected = tiny_scanner.scan("Who came back?", TEXT).select(top_k=3, order="score")
    assert [(pick.start, pick.end, pick.score) for pick in scanner.picks] == [
        (passage.start, passage.end, passage.score) for passage in expected
    ]
    assert sentences.picks[0].start == 42
    assert (chunks.picks[0].start, chunks.picks[0].end) == (0, len(TEXT))
    assert comparison.counted_by == "scanner"
    assert chunks.tokens == tiny_scanner.count_tokens(TEXT)


class Keeping(ScoredBy):
    """Notes what it prepares and what it is asked."""

    keeps_texts = True

    def __init__(self) -> None:
        super().__init__(lambda query, text, units: range(len(units)))
        self.calls: list[str] = []

    def prepare(self, text: str, **options: Any) -> PreparedText:
        self.calls.append("prepare")
        return super().prepare(text, **options)

    def score_prepared(
        self, query: str, texts: Sequence[PreparedText], **options: Any
    ) -> list[UnitScores]:
        self.calls.append(query)
        return super().score_prepared(query, texts, **options)


def test_the_next_question_is_another_one_on_what_was_prepared() -> None:
    scorer = Keeping()
    compare("Who?", TEXT, {"a": scorer}, count_tokens=words)
    assert scorer.calls == ["prepare", "Who?", "prepare", "Who?", NEXT_QUESTION]


def test_who_counts_tokens() -> None:
    scorers = {"a": prefers([0])}
    assert compare("Who?", TEXT, scorers).counted_by == "the bundled checkpoint"
    assert compare("Who?", TEXT, scorers).retrievals[0].tokens > 0
    assert (
        compare("Who?", TEXT, scorers, count_tokens=len).retrievals[0].picks[0].tokens
        == 12
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query": " \n"}, r"query: got ' \\n'; expected a question"),
        ({"scorers": {}}, "got 0 retrievers to compare; expected 1 to 8"),
        (
            {"scorers": {str(i): prefers([0]) for i in range(MOST_RETRIEVERS + 1)}},
            "got 9 retrievers",
        ),
        ({"top_k": 0}, "top_k: got 0; expected a whole number from 1 to 500"),
        ({"top_k": MOST_PICKS + 1}, "top_k: got 501"),
        ({"top_k": True}, "top_k: got True"),
        ({"top_k": [1, 2]}, "got 2 numbers for 1 retrievers"),
        (
            {"evidence": [(0, 81)]},
            "got 0-81; expected START-END with 0 <= START < END <= 80",
        ),
        ({"evidence": [(-1, 5)]}, "got -1-5"),
        ({"evidence": [(5, 5)]}, "got 5-5"),
        ({"evidence": [(12, 13)]}, "got 12-13, which is white space"),
        ({"count_tokens": "nope"}, "use one of"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    options: dict[str, object], message: str
) -> None:
    untouched = ScoredBy(lambda *_: pytest.fail("asked"))
    arguments = {"query": "Who?", "text": TEXT, "scorers": {"a": untouched}} | options
    with pytest.raises(ValueError, match=message):
        compare(**arguments)  # type: ignore[arg-type]


def test_a_score_that_is_no_number_is_refused() -> None:
    broken = ScoredBy(lambda query, text, units: [float("nan")] * len(units))
    with pytest.raises(ValueError, match=r"ScoredBy\.score_units returned"):
        compare("Who?", TEXT, {"a": prefers([0]), "b": broken}, count_tokens=words)


@given(st.lists(st.tuples(st.integers(0, 79), st.integers(1, 30)), max_size=8))
def test_evidence_is_merged_and_covers_the_same_characters(
    spans: list[tuple[int, int]],
) -> None:
    evidence = [(start, min(80, start + length)) for start, length in spans]
    evidence = [
        (start, end) for start, end in evidence if not TEXT[start:end].isspace()
    ]
    merged = check_evidence_spans(evidence, [TextFile("", TEXT)])
    covered = {place for start, end in merged for place in range(start, end)}
    assert covered == {place for start, end in evidence for place in range(start, end)}
    assert all(left[1] < right[0] for left, right in pairwise(merged))
