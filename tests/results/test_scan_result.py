"""What `ScanResult` holds, refuses and returns."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag import Passage, Scanner, ScanResult, ScoredSentence
from spscanner_rag.apps.pages.report import profile_of
from tests.fakes import result_of, words
from tests.results.small_result import TEXT, make


@pytest.fixture
def empty() -> ScanResult:
    return ScanResult("Who?", " \n", [], [], [], count_tokens=len)


def test_context_joins_neighbours_as_they_stand_and_marks_gaps(
    result: ScanResult,
) -> None:
    assert result.context(top_k=2) == "Anne signed it.\nNobody answered!"
    assert result.context(top_k=1, context=1) == "Anne signed it.  The captain left."
    assert result.context() == TEXT


def test_nothing_in_nothing_out(empty: ScanResult) -> None:
    assert empty.sentences == ()
    assert (
        empty.select()
        == empty.select(top_k=0.5, max_tokens=5, context=2, merge=True)
        == ()
    )
    assert empty.context() == ""
    with pytest.raises(ValueError, match="top_k"):
        empty.select(top_k=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_k": 0}, "top_k: got 0; expected an integer of at least 1"),
        ({"top_k": 0.0}, "top_k: got 0.0"),
        ({"top_k": 1.0}, "top_k: got 1.0"),
        ({"top_k": float("nan")}, "top_k: got nan"),
        ({"top_k": True}, "top_k: got True"),
        ({"top_k": "5"}, "top_k: got '5'"),
        ({"top_k": "elbow:9-3"}, "top_k: got 'elbow:9-3'"),
        ({"top_k": "elbow:0-3"}, "top_k: got 'elbow:0-3'"),
        ({"diversity": 1.1}, "diversity: got 1.1; expected a number from 0 to 1"),
        ({"diversity": None}, "diversity: got None"),
        ({"threshold": -0.1}, "threshold: got -0.1; expected a score from 0 to 1"),
        ({"threshold": 1.0000001}, "threshold: got 1.0000001"),
        ({"threshold": float("nan")}, "threshold: got nan"),
        ({"threshold": "0.5"}, "threshold: got '0.5'"),
        ({"max_tokens": 0}, "max_tokens: got 0; expected an integer of at least 1"),
        ({"max_tokens": 10.0}, "max_tokens: got 10.0"),
        ({"context": -1}, "context: got -1; expected the number of neighbours"),
        ({"context": None}, "context: got None"),
        ({"order": "best"}, 'order: got \'best\'; expected "document" or "score"'),
        ({"merge": 1}, "merge: got 1; expected True or False"),
        ({"count_tokens": 4}, "count_tokens: got int; expected a callable"),
        (
            {"count_tokens": "o200k"},
            "count_tokens: got 'o200k'.*use one of .*cl100k_base.*o200k_base",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    result: ScanResult, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        result.select(**arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logits": [1.0]}, "one value each per sentence"),
        ({"starts": [[0, 17, 36]]}, "one value each per sentence"),
        ({"ends": [15, 34, 53]}, "leave the text of 52 characters"),
        ({"starts": [-1, 17, 36]}, "overlap, are empty or leave the text"),
        ({"starts": [0, 14, 36]}, "overlap"),
        ({"starts": [0, 34, 36]}, "overlap, are empty"),
        (
            {"logits": [1.0, float("nan"), float("inf")]},
            "logits: got 2 values that are not finite",
        ),
    ],
)
def test_a_result_that_cannot_be_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_results_cannot_be_changed(result: ScanResult) -> None:
    with pytest.raises(ValueError, match="read-only"):
        result.logits[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        result.scores[0] = 9
    with pytest.raises(AttributeError):
        result.text = ""
    with pytest.raises(AttributeError):
        result.select()[0].score = 1.0
    given_to_it = np.array([1, 2, 3], dtype=np.float32)
    other = make(logits=given_to_it)
    given_to_it[0] = 7
    assert other.logits[0] == 1


def test_a_copy_is_itself(result: ScanResult) -> None:
    assert copy.copy(result) is copy.deepcopy(result) is result


def test_repr_never_holds_the_document() -> None:
    long = "word " * 10_000
    result = ScanResult(long, long, [0], [len(long) - 1], [0.0])
    for shown in (result, result.sentences[0], result.select()[0]):
        assert len(repr(shown)) < 200
    assert (
        repr(make())
        == "ScanResult(query='Who?', characters=52, sentences=3, best score=0.8808)"
    )
    assert (
        repr(ScoredSentence("a", 0, 1, 0.5, 0.6))
        == "ScoredSentence('a', start=0, end=1, logit=0.5, score=0.6)"
    )
    assert repr(Passage("a", 0, 1, 0.6)) == "Passage('a', start=0, end=1, score=0.6)"


@pytest.mark.parametrize("blocks", [[0, 0], [0, 1, 0], [[0, 0, 1]], 3, []])
def test_blocks_must_be_one_ascending_number_a_sentence(blocks: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"blocks: got shape .* for 3 sentences; expected one number for each",
    ):
        make(blocks=blocks)


def with_counter(**options: object) -> ScanResult:
    return result_of(
        ["One two three.", "Four.", "Five six."], [1.0, 3.0, 2.0], **options
    )


def test_a_pickle_keeps_what_was_read_but_not_the_counter() -> None:
    back = pickle.loads(pickle.dumps(with_counter(count_tokens=words, tokens_read=60)))
    assert back.tokens_read == 60
    with pytest.raises(
        ValueError, match="this result counts no tokens; expected count_tokens"
    ):
        back.select(max_tokens=3)
    assert [p.text for p in back.select(max_tokens=1, count_tokens=words)] == ["Four."]


@pytest.mark.parametrize("tokens", [-1, 1.5, True])
def test_a_number_of_tokens_that_cannot_be_is_refused(tokens: object) -> None:
    with pytest.raises(ValueError, match="tokens_read: got"):
        with_counter(tokens_read=tokens)


def test_a_scanner_counts_what_it_reads(tiny_scanner: Scanner) -> None:
    text = "He signed the treaty. It rained all day."
    result = tiny_scanner.scan("Who signed?", text)
    assert result.tokens_read == tiny_scanner.count_tokens(text)
    units = tiny_scanner.units_of(text)
    (again,) = tiny_scanner.scan_many(
        [tiny_scanner.pipeline.request("Who signed?", text, units)]
    )
    assert again.tokens_read == result.tokens_read
    assert again.logits.tolist() == result.logits.tolist()


@given(
    st.lists(st.tuples(st.integers(1, 40), st.floats(-5, 5, width=32)), max_size=20),
    st.integers(1, 50),
)
def test_the_profile_has_the_best_score_of_parts(
    sentences: list[tuple[int, float]], parts: int
) -> None:
    result = result_of(
        ["x" * length for length, _ in sentences],
        [logit for _, logit in sentences],
        "   ",
    )
    expected = [0.0] * parts
    for one in result.sentences:
        for part in {
            place * parts // len(result.text) for place in range(one.start, one.end)
        }:
            expected[part] = max(expected[part], one.score)
    if parts <= len(result.text):  # otherwise a character is wider than a part
        assert profile_of(result, parts).tolist() == pytest.approx(expected)


def test_a_text_may_answer_from_a_probability_on() -> None:
    known = result_of(["It rained."], [0.0], answerable=0.4)
    assert [known.may_answer(least) for least in (None, 0.4, 0.41)] == [
        True,
        True,
        False,
    ]
    assert known.select(require_answer=0.41) == ()
    unknown = result_of(["It rained."], [0.0])
    assert unknown.may_answer(None)
    with pytest.raises(ValueError, match="require_answer: this result does not have"):
        unknown.may_answer(0.4)
