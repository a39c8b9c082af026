from pathlib import Path

import pytest

from spscanner_rag import Scanner
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.evidence.sampling import sample_questions
from spscanner_rag.lab.training.stages.calibration import mean_recall, validate
from spscanner_rag.results.coverage import relevant_units


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
