"""Texts of a collection are ranked by their best sentences, whatever their order."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.scan.texts_together import (
    BEST_SENTENCES,
    FAR,
    behind_best,
    far_behind,
)
from spscanner_rag.scanner import Scanner

SALTMERE = Path(__file__).resolve().parents[2] / "examples" / "data" / "saltmere.jsonl"

cosine = st.floats(-1, 1, width=32)
cosines = st.lists(cosine, max_size=12).map(lambda values: np.float32(values))


@given(st.lists(cosines, max_size=6))
def test_the_best_text_is_not_behind_and_no_text_is_ahead(
    cosines_by_text: list[NDArray[np.float32]],
) -> None:
    behind = behind_best(cosines_by_text)
    assert len(behind) == len(cosines_by_text)
    assert max(behind, default=0.0) == 0.0


@given(st.lists(cosines, min_size=1, max_size=6), st.randoms())
def test_order_does_not_matter(
    cosines_by_text: list[NDArray[np.float32]], random: Random
) -> None:
    numbers = list(range(len(cosines_by_text)))
    random.shuffle(numbers)
    behind = behind_best(cosines_by_text)
    shuffled = behind_best([cosines_by_text[number] for number in numbers])
    assert shuffled == [behind[number] for number in numbers]


@given(cosines.filter(len))
def test_a_text_alone_is_not_behind(alone: NDArray[np.float32]) -> None:
    assert behind_best([alone]) == [0.0]


def test_several_near_sentences_come_before_one() -> None:
    several = np.full(BEST_SENTENCES, 0.5, np.float32)
    one = np.array([0.75] + [0.0] * BEST_SENTENCES, np.float32)
    assert behind_best([several, one]) == [0.0, pytest.approx(0.15 - 0.5)]


@given(st.lists(cosines, max_size=6))
def test_the_likeliest_text_is_never_far_behind(
    likelihoods_by_text: list[NDArray[np.float32]],
) -> None:
    best = [values.max(initial=-np.inf) for values in likelihoods_by_text]
    far = far_behind(likelihoods_by_text)
    assert len(far) == len(best)
    if best:
        assert not far[int(np.argmax(best))]


def test_a_text_is_far_behind_if_its_best_sentence_is() -> None:
    near = np.array([-9, 1.5 - FAR], np.float32)
    far = np.array([-9, 0.5 - FAR], np.float32)
    assert far_behind([np.float32([1]), near, far]) == [False, False, True]


@pytest.mark.slow
def test_the_page_with_several_near_sentences_is_first(bundled: Scanner) -> None:
    pages = {}
    for line in SALTMERE.read_text(encoding="utf-8").splitlines():
        page = json.loads(line)
        pages[page["doc_id"]] = page["text"]
    numbers = ["plot-potatoes", "plot-beans", "plot-leeks"]
    texts = [pages[number] for number in numbers]
    ranked = bundled.rank("How deep and how are leeks planted out?", texts, read=0)
    assert numbers[ranked[0].number] == "plot-leeks"
    backwards = bundled.rank(
        "How deep and how are leeks planted out?", texts[::-1], read=0
    )
    logits = [document.logit for document in ranked]
    assert [document.logit for document in backwards] == pytest.approx(logits, abs=1e-4)
