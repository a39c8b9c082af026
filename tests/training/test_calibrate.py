from pathlib import Path

import numpy as np
import pytest
import torch

from spscanner_rag import Scanner
from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.evaluation.data import Document, Question, relevant_units
from spscanner_rag.training.calibrate import calibrate


@pytest.fixture
def scanner(tiny_checkpoint: Path) -> Scanner:
    return Scanner(load_checkpoint(tiny_checkpoint, dtype=torch.float32))


def test_probabilities_add_up_to_the_relevant_sentences_and_ranks_stay(
    scanner: Scanner, documents: list[Document]
) -> None:
    asked = [(document, question) for document in documents[:5] for question in document.questions]
    pairs = [(question.text, document.text) for document, question in asked]
    before = scanner.scan_many(pairs)
    shift = calibrate(scanner, iter(asked))
    assert shift is not None
    assert abs(shift) > 0.1
    after = scanner.scan_many(pairs)
    expected = found = 0.0
    for (_, question), old, new in zip(asked, before, after, strict=True):
        np.testing.assert_allclose(new.logits, old.logits + shift, atol=1e-4)
        expected += relevant_units(new.starts, new.ends, question.evidence).sum()
        found += sum(sentence.score for sentence in new.sentences)
    assert found == pytest.approx(expected, rel=1e-3)


def test_questions_that_say_nothing_leave_the_scanner_as_it_is(scanner: Scanner) -> None:
    one = Document("d", "s", "", "All of it is evidence.", (Question("q", "What?", ((0, 22),)),))
    blank = Document("e", "s", "", "Some. More.     ", (Question("q", "What?", ((13, 14),)),))
    head = scanner.checkpoint.model.binary_head
    assert head is not None
    bias = head.bias.clone()
    assert calibrate(scanner, [(one, one.questions[0])]) is None
    assert calibrate(scanner, [(blank, blank.questions[0])]) is None
    assert calibrate(scanner, []) is None
    torch.testing.assert_close(head.bias, bias)
