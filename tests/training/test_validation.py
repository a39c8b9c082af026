from pathlib import Path

import pytest

from spscanner_rag import Scanner
from spscanner_rag.evaluation.data import Document, relevant_units
from spscanner_rag.training.validation import mean_recall, sample_questions, validate


def test_a_larger_sample_holds_the_smaller_and_no_order_matters(documents: list[Document]) -> None:
    small, large = sample_questions(documents, 3), sample_questions(documents, 10)
    assert {source: len(pairs) for source, pairs in large.items()} == {"roads": 10, "walks": 10}
    for source, pairs in small.items():
        assert pairs == large[source][:3]
        assert pairs == sample_questions(documents[::-1], 3)[source]
    assert sample_questions(documents, 10, seed=1) != large


def test_recall_is_that_of_the_scanners_ranking(tiny_checkpoint: Path, documents: list[Document]) -> None:
    scanner = Scanner.from_pretrained(tiny_checkpoint, device="cpu", dtype="float32")
    sample = {"walks": sample_questions(documents, 5)["walks"]}
    recalls = validate(scanner, sample)
    found = []
    for document, question in sample["walks"]:
        result = scanner.scan(question.text, document.text)
        relevant = relevant_units(result.starts, result.ends, question.evidence)
        found.append(float(relevant[result.logits.argmax()]))
    assert recalls["walks"][1] == pytest.approx(sum(found) / len(found))
    assert recalls["walks"][50] == 1.0  # ten sentences
    assert recalls["macro"] == recalls["walks"]


def test_the_macro_mean_counts_sources_alike() -> None:
    values = [{1: 0.0, 5: 0.2, 10: 0.4, 50: 1.0}, {1: 1.0, 5: 0.4, 10: 0.4, 50: 1.0}]
    assert mean_recall(values) == pytest.approx({1: 0.5, 5: 0.3, 10: 0.4, 50: 1.0})
    assert mean_recall([]) == {1: 0.0, 5: 0.0, 10: 0.0, 50: 0.0}
