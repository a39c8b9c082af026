"""One question over many documents: `scan_many(together=True)` and `rank`."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag import Scanner
from spscanner_rag.results.document_scores import Aggregation

LIBRARY = (
    "Tidewater is a validation library for Python. A model is a class, and its fields"
    " are checked when it is made. Write a function with the decorator field_check to"
    " reject a value. It gets the value and returns it, or raises."
)
SOUP = (
    "Leek soup is cooked slowly. Wash the leeks and cut them. Check the salt before you"
    " add more, because stock is salty. A bowl of it has little value as food, but it"
    " is warm."
)
SNAKES = (
    "Grass snakes swim well. They eat frogs and newts, and lay eggs in warm compost. A"
    " field with a pond is a good place to find them. Their bite is harmless."
)
DOCUMENTS = [SOUP, SNAKES, LIBRARY]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How do I check the value of a field?", LIBRARY),
        ("Should I check the salt of the soup?", SOUP),
        ("In what field do snakes live?", SNAKES),
    ],
)
def test_the_right_one_of_three_short_texts_is_first(
    bundled: Scanner, question: str, right: str
) -> None:
    ranked = bundled.rank(question, DOCUMENTS)
    assert ranked[0].text == right
    assert [document.score for document in ranked] == sorted(
        (d.score for d in ranked), reverse=True
    )
    assert sorted(document.number for document in ranked) == [0, 1, 2]


def test_a_collection_of_one_text_changes_nothing(bundled: Scanner) -> None:
    text = Path("examples/data/persuasion.txt").read_text(encoding="utf-8")[:20_000]
    question = "Why did Sir Walter leave Kellynch Hall?"
    (together,) = bundled.scan_many([(question, text)], together=True)
    np.testing.assert_array_equal(together.logits, bundled.scan(question, text).logits)


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(4)), st.sampled_from(["", " \n", "Frogs."]))
def test_ranking_follows_the_documents(
    tiny_scanner: Scanner, order: list[int], other: str
) -> None:
    texts = [*DOCUMENTS, other]
    ranked = tiny_scanner.rank("What do snakes eat?", [texts[i] for i in order])
    scores = {order[document.number]: document.score for document in ranked}
    as_given = {
        document.number: document.score
        for document in tiny_scanner.rank("What do snakes eat?", texts)
    }
    assert scores == pytest.approx(as_given, abs=1e-3)
    assert (scores[3] == 0) == (not other.strip())


def test_ranked_documents_have_their_passages(bundled: Scanner) -> None:
    (best,) = bundled.rank("What do grass snakes eat?", DOCUMENTS, top_k=1)
    assert (best.number, best.text) == (1, SNAKES)
    assert best.logit == best.result.document_score() == best.result.logits.max()
    assert best.score == best.result.scores.max()
    passages = best.passages(2)
    assert any("frogs" in passage.text for passage in passages)
    assert [SNAKES[p.start : p.end] for p in passages] == [p.text for p in passages]
    # of sentence-transformers' CrossEncoder.rank
    item = {
        "corpus_id": 1,
        "score": best.score,
    }
    assert best.to_dict() == item
    assert best.to_dict(return_documents=True) == item | {"text": SNAKES}


def test_nothing_to_rank(bundled: Scanner) -> None:
    assert bundled.rank("Who?", []) == []
    (empty,) = bundled.rank("Who signed?", [""])
    assert (empty.logit, empty.score, empty.passages()) == (-np.inf, 0.0, ())
    (one,) = bundled.rank("Who signed?", ["Anna."])
    assert np.isfinite(one.score)


@pytest.mark.parametrize(
    ("documents", "top_k", "aggregation", "error", "message"),
    [
        ("a text", None, "max", TypeError, "one string"),
        (["a"], 0, "max", ValueError, "top_k: got 0"),
        (["a"], 1.5, "max", ValueError, "top_k: got 1.5"),
        (["a"], None, "best", ValueError, "aggregation is 'best'"),
        ([None], None, "max", TypeError, "expected a string"),
    ],
)
def test_refused(
    tiny_scanner: Scanner,
    documents: list[str],
    top_k: int,
    aggregation: Aggregation,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        tiny_scanner.rank("Who?", documents, top_k, aggregation=aggregation)


def test_a_scanner_without_lexical_channel_ignores_the_collection(
    windowed_checkpoint: Path,
) -> None:
    scanner = Scanner.from_pretrained(
        windowed_checkpoint, device="cpu", dtype="float32"
    )
    assert not scanner.uses_collection
    pairs = [("Who signed?", text * 3) for text in DOCUMENTS]
    for left, right in zip(
        scanner.scan_many(pairs), scanner.scan_many(pairs, together=True), strict=True
    ):
        np.testing.assert_array_equal(left.logits, right.logits)
