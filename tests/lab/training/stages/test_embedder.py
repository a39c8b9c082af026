"""The embedder stage: its loss by the formula, runs of tiny models, and refusals."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.passages import PassageColumn, word_scores
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.embedder import EmbedderObjective
from spscanner_lab.training.start import RunFiles
from spscanner_lab.training.training_run import TrainingRun
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.baselines.unit_kinds import segmenter_of
from tests.lab.training.stages.test_reranker import written

library = pytest.importorskip("sentence_transformers")
CPU = torch.device("cpu")
ANSWERS = {
    "Who signed the treaty?": "The captain signed it.",
    "Who wrote the date in the book?": "The keeper wrote in it.",
    "Was the well dry?": "It was dry and he left.",
    "Who rang?": "It rained and the bell rang.",
}
COLUMNS = [
    PassageColumn("Who left?", ("The captain left.", "The bell rang.")),
    PassageColumn(
        "Who wrote?", ("The keeper wrote.", "It rained.", "The well was dry.")
    ),
    PassageColumn("Who rang the bell?", ("The bell rang.", "The captain left.")),
]
SaveBert = Callable[[Path, int | None], Path]


def encoder(folder: Path, save_bert: SaveBert, similarity: str) -> Path:
    model = library.SentenceTransformer(
        str(save_bert(folder / "bert", None)), device="cpu"
    )
    model.similarity_fn_name = similarity
    model.save(str(folder / "base"))
    return folder / "base"


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    """Parts of a log.

    Their paragraphs answer one question each, in a different order in each part.
    """
    documents = []
    for number in range(12):
        order = np.random.default_rng(number).permutation(len(ANSWERS)).tolist()
        text = "\n\n".join(
            [list(ANSWERS.values())[place] for place in order] + [f"In {number}."]
        )
        asked = tuple(
            Question(
                question, question, ((text.index(own), text.index(own) + len(own)),)
            )
            for question, own in ANSWERS.items()
        )
        documents.append(Document(f"log.{number}", "logs", "", text, asked))
    held_out = replace(documents[0], doc_id="held out")
    data, dev = (
        written(documents, tmp_path / "train.jsonl"),
        written([held_out], tmp_path / "dev.jsonl"),
    )
    return RunFiles([data], [dev], tmp_path / "out", None, None)


def by_formula(model: Any, columns: list[PassageColumn], scale: float) -> torch.Tensor:
    """NT-Xent of questions and passages.

    The right passages come first, then all second ones, and so on.
    """

    def embedded(texts: list[str]) -> torch.Tensor:
        vectors: torch.Tensor = model(model.preprocess(texts))["sentence_embedding"]
        return vectors

    questions = embedded([column.question for column in columns])
    passages = embedded(
        [column.passages[place] for place in range(2) for column in columns]
    )
    logits = model.similarity(questions, passages) * scale
    right = torch.arange(len(columns))
    of_passages = F.cross_entropy(logits, right)
    return (of_passages + F.cross_entropy(logits[:, : len(columns)].T, right)) / 2


@pytest.mark.parametrize("tokens", [32, 64, 16384])
@pytest.mark.parametrize(("similarity", "scale"), [("cosine", 20.0), ("dot", 1.0)])
def test_the_loss_is_that_of_the_formula_however_many_texts_a_pass_has(
    tokens: int, similarity: str, scale: float, tmp_path: Path, save_bert: SaveBert
) -> None:
    model = library.SentenceTransformer(
        str(encoder(tmp_path, save_bert, similarity)), device="cpu"
    ).eval()
    recipe, text = (
        Recipe(tokens_per_pass=tokens, dtype="float32"),
        "It rained. The bell rang.",
    )
    document = Document("a", "a", "", text, (Question("a", "What rang?", ((11, 25),)),))
    objective = EmbedderObjective(
        DocumentStore([document]), recipe, segmenter_of("sentence"), model
    )
    # the later column counts
    again = [
        PassageColumn("Who left?", ("The well was dry.", "It rained.")),
        *COLUMNS,
    ]
    for found in objective.losses(model, again, range(len(again))):
        found.backward()  # type: ignore[no-untyped-call]
    gradients = [
        parameter.grad.clone()
        for parameter in model.parameters()
        if parameter.grad is not None
    ]
    model.zero_grad()
    expected = by_formula(model, COLUMNS, scale)
    expected.backward()  # type: ignore[no-untyped-call]
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)
    own = [
        parameter.grad for parameter in model.parameters() if parameter.grad is not None
    ]
    for one, other in zip(gradients, own, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    assert objective.tokens(COLUMNS[0]) == 5 + 6 + 6


def test_the_divergence_from_a_teacher_is_that_of_the_formula(
    tmp_path: Path, save_bert: SaveBert
) -> None:
    """Sum over a question's passages of p * log(p / q), averaged over questions."""
    folder = encoder(tmp_path, save_bert, "cosine")
    model = library.SentenceTransformer(str(folder), device="cpu").eval()
    recipe = Recipe(embedder_loss="kl", dtype="float32")
    question = Question("a", "What rang?", ((11, 25),))
    document = Document("a", "a", "", "It rained. The bell rang.", (question,))
    objective = EmbedderObjective(
        DocumentStore([document]), recipe, segmenter_of("sentence"), model
    )
    (loss,) = objective.losses(model, COLUMNS, range(3))
    loss.backward()  # type: ignore[no-untyped-call]
    assert any(weights.grad is not None for weights in model.parameters())
    expected = []
    for column in COLUMNS:
        vectors = model.encode([column.question, *column.passages[:2]])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        student = np.exp(vectors[1:] @ vectors[0] * 20.0)
        student /= student.sum()
        teacher = np.exp(word_scores(column)[:2])
        teacher /= teacher.sum()
        expected.append((teacher * np.log(teacher / student)).sum())
    assert loss.item() == pytest.approx(np.mean(expected), abs=1e-4)


@pytest.mark.parametrize(
    ("similarity", "negatives", "dtype"),
    [("cosine", 0, "float32"), ("dot", 2, "float32"), ("cosine", 2, "bfloat16")],
)
def test_a_trained_model_is_a_retriever_that_finds_the_answers(
    similarity: str,
    negatives: int,
    dtype: str,
    files: RunFiles,
    tmp_path: Path,
    save_bert: SaveBert,
) -> None:
    own = replace(files, base=str(encoder(tmp_path, save_bert, similarity)))
    recipe = Recipe(
        stage="embedder",
        steps=16,
        sequences_per_step=4,
        learning_rate=1e-2,
        rerank_negatives=negatives,
        dtype=dtype,
        validate_every=100,
    )
    losses: list[float] = []
    run = TrainingRun(own, recipe, CPU)
    after = run.train(
        lambda report: losses.append(report.loss), lambda step, validation: None
    )
    assert np.mean(losses[-6:]) < np.mean(losses[:4])
    assert after is not None
    card = (own.out / "README.md").read_text()
    assert "# out: an embedding model" in card
    assert 'embedder = Dense("out", "passage")' in card
    found = Dense(own.out, "passage", device="cpu")
    assert found.similarity == similarity
    text = json.loads(files.validation[0].read_text())["text"]
    units = found.units_of(text)
    ranks = []
    for question, answer in ANSWERS.items():
        logits = found.score_units(question, text, units)
        right = [unit.text_with_headings(text).strip() for unit in units].index(answer)
        ranks.append(int((logits >= logits[right]).sum()))
    assert after.measures["logs"]["mrr@10"] == pytest.approx(
        np.mean([1 / rank for rank in ranks])
    )
    again = TrainingRun(
        replace(own, base=str(own.out), out=tmp_path / "further"), recipe, CPU
    )
    assert again.start.settings.training["steps"] == 16


def test_an_embedder_starts_from_a_base(files: RunFiles, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='"embedder" with --config; expected --base'):
        TrainingRun(
            replace(files, config=tmp_path / "shape.json"),
            Recipe(stage="embedder"),
            CPU,
        )
