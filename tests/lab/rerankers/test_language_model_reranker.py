"""A language model ranks the best of BM25: scores, several texts, and failures."""

import logging

import numpy as np
import pytest

from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.rerankers.language_model_reranker import LanguageModelReranker
from spscanner_lab.synthesis.scripted import scripted_reply
from spscanner_rag.scorers import score_batch, words_together

QUERY = "Who signed the treaty?"
TEXT = "It rained. Nobody signed. The captain signed the treaty. The treaty was long."
OTHER = "The keeper signed the treaty and the contract. It snowed."
SCRIPTED = LanguageModel("scripted", scripted_reply)


def logits_of(scorer: LanguageModelReranker, *texts: str) -> list[list[float]]:
    requests = [(QUERY, text, scorer.units_of(text)) for text in texts]
    collection = words_together(scorer, [units for _, _, units in requests])
    scores = score_batch(scorer, requests, collection=collection)
    return [scores_of_text.logits.tolist() for scores_of_text in scores]


@pytest.mark.parametrize("order", ["listwise", "pairwise", "setwise"])
def test_the_model_decides_among_the_best(order: str) -> None:
    scorer = LanguageModelReranker(SCRIPTED, order, best=2)  # type: ignore[arg-type]
    assert scorer.name == f"{order}:scripted"
    (logits,) = logits_of(scorer, TEXT)
    ranking = np.argsort(-np.array(logits))
    assert ranking[0] == 2
    shares = 1 / (1 + np.exp(-np.sort(logits)[::-1]))
    assert shares[:2] == pytest.approx([2 / 3, 1 / 3], abs=1e-5)
    assert shares[2] < 1e-6, "what the model did not rank is below"


def test_texts_of_a_collection_are_ranked_together() -> None:
    scorer = LanguageModelReranker(SCRIPTED)
    first, second = logits_of(scorer, TEXT, OTHER)
    shares = 1 / (1 + np.exp(-np.array([*first, *second])))
    assert sorted(shares) == pytest.approx([n / 7 for n in range(1, 7)], abs=1e-5)
    (alone,) = logits_of(scorer, TEXT)
    assert max(1 / (1 + np.exp(-np.array(alone)))) == pytest.approx(4 / 5, abs=1e-5)


def test_a_model_that_fails_leaves_the_order_of_bm25(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def ask(prompt: str) -> str:
        raise TimeoutError("too slow")

    asker = Asker(retries=0)
    scorer = LanguageModelReranker(LanguageModel("slow", ask), asker=asker)
    with caplog.at_level(logging.WARNING):
        (logits,) = logits_of(scorer, TEXT)
    assert np.argmax(logits) == 2
    assert "1 prompts had no reply" in caplog.text


def test_a_lasting_failure_is_an_error() -> None:
    def ask(prompt: str) -> str:
        raise ValueError("invalid api key")

    scorer = LanguageModelReranker(LanguageModel("locked", ask))
    with pytest.raises(OSError, match=r"locked was asked nothing more: .*invalid api"):
        logits_of(scorer, TEXT)


def test_long_units_are_cut() -> None:
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return "[1]"

    text = "treaty " * 400
    scorer = LanguageModelReranker(
        LanguageModel("m", ask), unit="document", passage_words=7
    )
    logits_of(scorer, text, OTHER)
    assert "] treaty treaty treaty treaty treaty treaty treaty\n" in prompts[0]


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="order is 'random'; expected one of listwise"):
        LanguageModelReranker(SCRIPTED, "random")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="best is 0"):
        LanguageModelReranker(SCRIPTED, best=0)
