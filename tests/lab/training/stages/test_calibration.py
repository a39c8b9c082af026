from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag import Scanner
from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.lab.evidence.questions import Document, Question, sample_questions
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.evidence import EvidenceStage, calibrate, fitted_shift, mean_measures
from spscanner_rag.lab.training.start import RunFiles
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.results.selection import sigmoid


@pytest.fixture
def scanner(tiny_checkpoint: Path) -> Scanner:
    """Random, but for some sense of which words the question has."""
    checkpoint = load_checkpoint(tiny_checkpoint, dtype=torch.float32)
    assert checkpoint.model.lexical_prior is not None
    torch.nn.init.constant_(checkpoint.model.lexical_prior.weight, 8.0)
    return Scanner(checkpoint)


def test_probabilities_add_up_to_the_relevant_sentences_and_ranks_stay(
    scanner: Scanner, documents: list[Document]
) -> None:
    asked = [(document, question) for document in documents[:5] for question in document.questions]
    document, question = asked[0]  # and one label is wrong, for else a threshold would part them all
    asked[0] = document, replace(question, evidence=document.questions[1].evidence)
    pairs = [(question.text, document.text) for document, question in asked]
    before = scanner.scan_many(pairs)
    fitted = calibrate(scanner, iter(asked))
    assert fitted is not None
    scale, shift = fitted
    assert scale > 0
    after = scanner.scan_many(pairs)
    assert any(abs(old.logits - new.logits).max() > 0.1 for old, new in zip(before, after, strict=True))
    expected = found = 0.0
    for (_, question), old, new in zip(asked, before, after, strict=True):
        np.testing.assert_allclose(new.logits, scale * old.logits + shift, rtol=1e-4, atol=1e-4)
        expected += relevant_units(new.starts, new.ends, question.evidence).sum()
        found += sum(sentence.score for sentence in new.sentences)
    assert found == pytest.approx(expected, rel=1e-3)


def test_questions_that_say_nothing_leave_the_scanner_as_it_is(
    scanner: Scanner, documents: list[Document]
) -> None:
    one = Document("d", "s", "", "All of it is evidence.", (Question("q", "What?", ((0, 22),)),))
    blank = Document("e", "s", "", "Some. More.     ", (Question("q", "What?", ((13, 14),)),))
    head = scanner.checkpoint.model.binary_head
    assert head is not None
    bias = head.bias.clone()
    assert calibrate(scanner, [(one, one.questions[0])]) is None
    assert calibrate(scanner, [(blank, blank.questions[0])]) is None
    assert calibrate(scanner, []) is None
    prior = scanner.checkpoint.model.lexical_prior
    assert prior is not None
    torch.nn.init.constant_(prior.weight, -8.0)  # it prefers what is irrelevant
    asked = [(document, question) for document in documents[:3] for question in document.questions]
    assert calibrate(scanner, asked) is None
    assert prior.weight.item() == pytest.approx(-8.0)
    torch.testing.assert_close(head.bias, bias)


SENTENCES = st.lists(st.tuples(st.floats(-20, 20), st.booleans()), min_size=2, max_size=40).filter(
    lambda sentences: len({relevant for _, relevant in sentences}) == 2
)


@given(sentences=SENTENCES, weight=st.floats(0.1, 20), by=st.floats(-10, 10))
def test_the_probabilities_add_up_to_the_relevant_sentences(
    sentences: list[tuple[float, bool]], weight: float, by: float
) -> None:
    logits, relevant = map(np.array, zip(*sentences, strict=True))
    weights = np.where(relevant, weight, 1.0)
    shift = fitted_shift(logits, relevant, weight)
    assert (weights * sigmoid(logits + shift)).sum() == pytest.approx(weights[relevant].sum(), rel=1e-6)
    assert fitted_shift(logits - by, relevant, weight) - shift == pytest.approx(by, abs=1e-6)


@pytest.mark.parametrize(
    ("marks", "weight"), [([False, False], 5.0), ([True, True], 5.0), ([True, False], 0.0)]
)
def test_sentences_of_one_kind_have_no_level(marks: list[bool], weight: float) -> None:
    assert fitted_shift(np.array([1.0, -2.0]), np.array(marks), weight) == 0.0


def test_recall_is_that_of_the_scanners_ranking(
    tiny_checkpoint: Path, corpus_file: Path, documents: list[Document], tmp_path: Path
) -> None:
    files = RunFiles([corpus_file], [], tmp_path, str(tiny_checkpoint), None)
    stage = EvidenceStage(files, Recipe(final_validation_questions=5), torch.device("cpu"), print)
    assert stage.validate(stage.start(), final=True) is None
    stage.held_out = [document for document in documents if document.source == "walks"]
    checkpoint = load_checkpoint(tiny_checkpoint, dtype=torch.float32)
    validation = stage.validate(checkpoint, final=True)
    assert validation is not None
    found = []
    for document, question in sample_questions(documents, 5)["walks"]:
        result = Scanner(checkpoint).scan(question.text, document.text)
        relevant = relevant_units(result.starts, result.ends, question.evidence)
        found.append(float(relevant[result.logits.argmax()]))
    recalls = validation.measures
    assert recalls["walks"]["1"] == pytest.approx(sum(found) / len(found))
    assert recalls["walks"]["50"] == 1.0  # ten sentences
    assert recalls["macro"] == recalls["walks"]
    assert validation.choice == recalls["macro"]["10"]


def test_the_macro_mean_counts_sources_alike() -> None:
    values = [{"1": 0.0, "10": 0.4}, {"1": 1.0, "10": 0.4}]
    assert mean_measures(values, ["1", "10"]) == pytest.approx({"1": 0.5, "10": 0.4})
    assert mean_measures([], ["1"]) == {"1": 0.0}
