r"""Trains an embedding model on questions with known evidence: the baseline of the paper's Table 1.

    python examples/training/embedder.py --base MODEL --data train.jsonl --out DIR

The loss is NT-Xent (Chen et al., 2020): the sentence that answers, among those of the batch.
The result is the retriever ``dense:DIR``.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device
from torch.nn import functional as F

from spscanner_rag.lab.evidence.questions import read_documents
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.text.segmentation import SentenceSegmenter

Pair = tuple[str, list[str]]  # a question, and the sentences that answer it


def main() -> None:
    """Train and save the model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", required=True, help="a sentence-transformers model, by name or folder")
    parser.add_argument("--data", type=Path, action="extend", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64, help="questions of a step")
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--learning-rate", type=float, default=2e-5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    pairs = list(pairs_of(given.data))
    if len(pairs) < 2:
        sys.exit(f"got {len(pairs)} questions with evidence; expected at least 2")
    model = SentenceTransformer(given.base)
    for step, loss in enumerate(train(model, pairs, given), 1):
        if step % 20 == 0:
            print(f"step {step:,} of {given.steps:,}  loss {loss:.3f}", file=sys.stderr, flush=True)
    model.save(str(given.out))


def pairs_of(paths: Sequence[Path]) -> Iterator[Pair]:
    """The answerable questions of files with the sentences of their evidence."""
    segmenter = SentenceSegmenter()
    for document in read_documents(paths):
        units = segmenter.segment(document.text)
        for question in document.questions:
            relevant = relevant_units(*Spans.of(units), question.evidence)
            sentences = [
                unit.own_text(document.text) for unit, known in zip(units, relevant, strict=True) if known
            ]
            if sentences and question.answerable:
                yield question.text, sentences


def train(model: SentenceTransformer, pairs: Sequence[Pair], given: argparse.Namespace) -> Iterator[float]:
    """Take the steps, yielding the loss of each."""
    draw = random.Random(given.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, given.learning_rate, total_steps=given.steps, pct_start=0.1
    )
    model.train()
    for _ in range(given.steps):
        batch = draw.sample(pairs, min(given.batch, len(pairs)))
        questions = embedded(model, [question for question, _ in batch])
        passages = embedded(model, [draw.choice(sentences) for _, sentences in batch])
        loss = nt_xent(questions, passages, given.temperature)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        yield loss.item()


def embedded(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """Normalized vectors with gradients: (texts, width)."""
    features = batch_to_device(model.preprocess(texts), model.device)
    return F.normalize(model(features)["sentence_embedding"], dim=-1)


def nt_xent(questions: torch.Tensor, passages: torch.Tensor, temperature: float) -> torch.Tensor:
    """Cross-entropy of the right passage, and of the right question, among those of the batch, (batch, width)."""
    logits = questions @ passages.T / temperature
    right = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, right) + F.cross_entropy(logits.T, right)) / 2


if __name__ == "__main__":
    main()
