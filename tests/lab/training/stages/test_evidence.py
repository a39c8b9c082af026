from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.evidence.sampling import sample_questions
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.examples import Example
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.evidence import (
    EvidenceObjective,
    EvidenceStage,
    calibrate,
    evidence_loss,
    fitted_shift,
    mean_measures,
    passes,
    unit_states,
)
from spscanner_lab.training.start import RunFiles
from spscanner_rag import Scanner
from spscanner_rag.checkpoint import load_checkpoint, load_model
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.mamba2.token_sequences import TokenSequence
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.results.ranking import sigmoid
from spscanner_rag.scan.reading import Reading


@pytest.fixture
def scanner(tiny_checkpoint: Path) -> Scanner:
    """A random scanner that has some sense of which words the question has."""
    checkpoint = load_checkpoint(tiny_checkpoint, dtype=torch.float32)
    assert checkpoint.model.lexical_prior is not None
    torch.nn.init.constant_(checkpoint.model.lexical_prior.weight, 8.0)
    return Scanner(checkpoint)


def test_probabilities_add_up_to_the_relevant_sentences_and_ranks_stay(
    scanner: Scanner, documents: list[Document]
) -> None:
    asked = [
        (document, question)
        for document in documents[:5]
        for question in document.questions
    ]
    # one label is wrong, since otherwise a threshold would separate all
    document, question = asked[0]
    asked[0] = document, replace(question, evidence=document.questions[1].evidence)
    pairs = [(question.text, document.text) for document, question in asked]
    before = scanner.scan_many(pairs)
    fitted = calibrate(scanner, iter(asked))
    assert fitted is not None
    scale, shift = fitted
    assert scale > 0
    after = scanner.scan_many(pairs)
    assert any(
        abs(old.logits - new.logits).max() > 0.1
        for old, new in zip(before, after, strict=True)
    )
    expected = found = 0.0
    for (_, question), old, new in zip(asked, before, after, strict=True):
        np.testing.assert_allclose(
            new.logits, scale * old.logits + shift, rtol=1e-4, atol=1e-4
        )
        expected += relevant_units(new.starts, new.ends, question.evidence).sum()
        found += sum(sentence.score for sentence in new.sentences)
    assert found == pytest.approx(expected, rel=1e-3)


def test_questions_that_say_nothing_leave_the_scanner_as_it_is(
    scanner: Scanner, documents: list[Document]
) -> None:
    one = Document(
        "d", "s", "", "All of it is evidence.", (Question("q", "What?", ((0, 22),)),)
    )
    blank = Document(
        "e", "s", "", "Some. More.     ", (Question("q", "What?", ((13, 14),)),)
    )
    head = scanner.checkpoint.model.binary_head
    assert head is not None
    bias = head.bias.clone()
    assert calibrate(scanner, [(one, one.questions[0])]) is None
    assert calibrate(scanner, [(blank, blank.questions[0])]) is None
    assert calibrate(scanner, []) is None
    with pytest.raises(ValueError, match="query"):  # not "too few"
        calibrate(scanner, [(one, Question("q", " ", ((0, 22),)))])
    prior = scanner.checkpoint.model.lexical_prior
    assert prior is not None
    torch.nn.init.constant_(prior.weight, -8.0)  # it prefers irrelevant sentences
    asked = [
        (document, question)
        for document in documents[:3]
        for question in document.questions
    ]
    assert calibrate(scanner, asked) is None
    assert prior.weight.item() == pytest.approx(-8.0)
    torch.testing.assert_close(head.bias, bias)


SENTENCES = st.lists(
    st.tuples(st.floats(-20, 20), st.booleans()), min_size=2, max_size=40
).filter(lambda sentences: len({relevant for _, relevant in sentences}) == 2)


@given(sentences=SENTENCES, weight=st.floats(0.1, 20), by=st.floats(-10, 10))
def test_the_probabilities_add_up_to_the_relevant_sentences(
    sentences: list[tuple[float, bool]], weight: float, by: float
) -> None:
    logits, relevant = map(np.array, zip(*sentences, strict=True))
    weights = np.where(relevant, weight, 1.0)
    shift = fitted_shift(logits, relevant, weight)
    assert (weights * sigmoid(logits + shift)).sum() == pytest.approx(
        weights[relevant].sum(), rel=1e-6
    )
    assert fitted_shift(logits - by, relevant, weight) - shift == pytest.approx(
        by, abs=1e-6
    )


@pytest.mark.parametrize(
    ("marks", "weight"),
    [([False, False], 5.0), ([True, True], 5.0), ([True, False], 0.0)],
)
def test_sentences_of_one_kind_have_no_level(marks: list[bool], weight: float) -> None:
    assert fitted_shift(np.array([1.0, -2.0]), np.array(marks), weight) == 0.0


def test_recall_is_that_of_the_scanners_ranking(
    tiny_checkpoint: Path, corpus_file: Path, documents: list[Document], tmp_path: Path
) -> None:
    files = RunFiles([corpus_file], [], tmp_path, str(tiny_checkpoint), None)
    stage = EvidenceStage(
        files, Recipe(final_validation_questions=5), torch.device("cpu"), print
    )
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


WEIGHTED = Recipe(dtype="float32", positive_weight=3.0, sequences_per_step=2)
POSITIONS = np.array([9, 19, 29])


def example(relevant: list[bool], seed: int = 0) -> Example:
    draw = np.random.default_rng(seed)
    sequence = TokenSequence(
        draw.integers(0, 300, 30).astype(np.int32),
        POSITIONS,
        draw.integers(0, 6, 30).astype(np.uint8),
        draw.normal(size=(3, 4)).astype(np.float32),
    )
    return Example(sequence, np.array(relevant))


def loss(checkpoint: Path, recipe: Recipe, *examples: Example) -> float:
    model = load_model(checkpoint)
    return evidence_loss(model, examples, range(len(examples)), recipe).item()


def logits(checkpoint: Path, given: Example) -> torch.Tensor:
    return torch.from_numpy(
        read_logits(load_model(checkpoint), [given.sequence], 512)[0]
    )


def test_the_binary_loss_is_a_mean_over_sentences_and_weighs_relevant_ones(
    tiny_checkpoint: Path,
) -> None:
    first, second = example([True, False, False]), example([False, False, True], seed=1)
    expected = [
        F.binary_cross_entropy_with_logits(
            logits(tiny_checkpoint, e),
            torch.tensor(e.relevant).float(),
            pos_weight=torch.tensor(3.0),
        ).item()
        for e in (first, second)
    ]
    assert loss(tiny_checkpoint, WEIGHTED, first, second) == pytest.approx(
        np.mean(expected), rel=1e-4
    )


def test_a_shift_is_a_bias_that_the_model_does_not_have(tiny_checkpoint: Path) -> None:
    recipe = replace(WEIGHTED, ranking_weight=0.5)
    given, model = [example([False, True, False])], load_model(tiny_checkpoint)
    shifted = evidence_loss(model, given, [0], recipe, shift=1.5).item()
    plain = evidence_loss(model, given, [0], recipe).item()
    assert model.binary_head is not None
    with torch.no_grad():
        model.binary_head.bias += 1.5
    assert shifted == pytest.approx(
        evidence_loss(model, given, [0], recipe).item(), rel=1e-5
    )
    assert shifted != pytest.approx(plain, rel=1e-3)


def test_ranking_is_a_softmax_over_the_sequence_and_nothing_without_evidence(
    tiny_checkpoint: Path,
) -> None:
    ranked = replace(WEIGHTED, ranking_weight=0.5)
    answered, unanswered = (
        example([False, True, False]),
        example([False, False, False], seed=1),
    )
    added = loss(tiny_checkpoint, ranked, answered) - loss(
        tiny_checkpoint, WEIGHTED, answered
    )
    expected = -logits(tiny_checkpoint, answered).log_softmax(0)[1].item()
    assert added == pytest.approx(0.5 * expected, rel=1e-3)
    assert loss(tiny_checkpoint, ranked, unanswered) == pytest.approx(
        loss(tiny_checkpoint, WEIGHTED, unanswered)
    )


@settings(max_examples=50)
@given(
    lengths=st.lists(st.integers(1, 3000), min_size=1, max_size=20),
    most=st.integers(64, 8192),
    packs=st.booleans(),
)
def test_every_sequence_is_read_once_and_a_pass_is_within_its_limit(
    lengths: list[int], most: int, packs: bool
) -> None:
    found = passes(lengths, most, packs)
    assert sorted(i for members in found for i in members) == list(range(len(lengths)))
    for members in found:
        own = [lengths[i] for i in members]
        assert len(own) == 1 or (sum(own) if packs else len(own) * max(own)) <= most


def test_padding_leaves_the_gradients(
    tiny_checkpoint: Path, store: DocumentStore, reading: Reading
) -> None:
    recipe = Recipe(sequences_per_step=3, dtype="float32", ranking_weight=0.5)
    objective = EvidenceObjective(store, reading, recipe)
    examples = [objective.example(number, 64) for number in range(4)]

    def gradients(reads: list[list[int]]) -> dict[str, torch.Tensor]:
        model = load_model(tiny_checkpoint).requires_grad_(True)
        for one in reads:
            loss = evidence_loss(model, examples, one, recipe)
            loss.backward()  # type: ignore[no-untyped-call]
        return {
            name: p.grad for name, p in model.named_parameters() if p.grad is not None
        }

    expected, found = gradients([[0], [1], [2], [3]]), gradients([[0, 1], [2, 3]])
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("lengths", [[1], [70], [90, 30]])
@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda",
            marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
        ),
    ],
)
def test_recomputing_keeps_each_blocks_input_alone_and_the_gradients(
    device: str, lengths: list[int], dtype: str
) -> None:
    config = Mamba2Config(d_model=16, n_layer=3, vocab_size=61, d_state=8, headdim=8)
    sequences = [
        TokenSequence(np.arange(n, dtype=np.int32) % 61, np.arange(n)) for n in lengths
    ]
    kept, found = [], []
    for where, recomputes in (("cpu", False), (device, True)):
        torch.manual_seed(0)
        model = ScannerModel(config).to(where)
        model.backbone.recomputes = recomputes
        saved: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, to=saved: to.append(t.nbytes) or t, lambda t: t
        ):
            states = unit_states(model, sequences, dtype)
        torch.cat([state.float().square() for state in states]).sum().backward()
        kept.append(sum(saved))
        found.append(
            {
                name: p.grad.cpu()
                for name, p in model.named_parameters()
                if p.grad is not None
            }
        )
    assert kept[1] < kept[0] / 4
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        close = (
            {"rtol": 1e-3, "atol": 1e-4}
            if dtype == "float32" or device == "cpu"
            else {"rtol": 0.1, "atol": 0.1}
        )
        torch.testing.assert_close(found[1][name], value, **close, msg=name)
