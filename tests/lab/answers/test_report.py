"""Rows of a report on answers."""

from spscanner_lab.answers.report import answer_rows, counts_of
from tests.lab.answers.scored_answers import NOTHING, OF_BM25, scored, set_of


def test_rows_are_means_of_what_there_is() -> None:
    found = answer_rows([OF_BM25, NOTHING]).of_sources
    values = {
        (row["source"], row["metric"]): row["value"]
        for row in found
        if row["metric"] in ("accuracy", "token_f1")
    }
    assert values == {
        ("a", "accuracy"): 0.5,
        ("a", "token_f1"): 0.75,
        ("b", "accuracy"): 1.0,
        ("b", "token_f1"): 0.5,
        ("macro", "accuracy"): 0.75,
        ("macro", "token_f1"): 0.625,
        ("micro", "accuracy"): 2 / 3,
        ("micro", "token_f1"): 0.625,
    }
    assert {row["retriever"] for row in found} == {"bm25"}, (
        "nothing was answered from whole documents"
    )
    assert counts_of(OF_BM25) == {
        "answers_from": "bm25",
        "answering": {"prompts": 5, "prompt_tokens": 1_000, "reply_tokens": 50},
        "judging": {"prompts": 4, "prompt_tokens": 300, "reply_tokens": 20},
    }


def test_lengths_are_the_data_s_tokens_or_counted() -> None:
    answers = set_of(
        scored("a", "1", 1.0, True, tokens=9_000), scored("a", "2", 0.0, False)
    )
    counted = answer_rows([answers], count_tokens=lambda text: 300_000).of_sources
    edges = {row["k"]: row["value"] for row in counted if "f1_by" in row["metric"]}
    assert edges == {8_000: 1.0, 256_000: 0.0}
    uncounted = answer_rows([answers]).of_sources
    assert {row["k"] for row in uncounted if "by_length" in row["metric"]} == {8_000}


def test_categories_have_rows_of_their_own() -> None:
    answers = set_of(
        scored("a", "1", None, True, category="law"),
        scored("b", "2", None, False, category="law"),
        scored("b", "3", None, False, category="law"),
        scored("b", "4", None, True, category="other"),
    )
    rows = answer_rows([answers]).of_categories
    values = {
        (category, row["source"]): row["value"]
        for category, of_category in rows.items()
        for row in of_category
        if row["metric"] == "accuracy"
    }
    assert values["law", "micro"] == 1 / 3
    assert values["law", "macro"] == 1 / 2
    assert values["other", "micro"] == 1
