"""Later questions about a text that is prepared: seconds, and what is lost.

The same questions are asked with every ``read``, in turn; a vector store of
all-MiniLM-L6-v2's sentences is asked in the same run. With ``--data`` follow recall and
nDCG, and their differences to ``read="all"``, with intervals over documents.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spscanner_lab.benchmarks.report import Commands
from spscanner_lab.benchmarks.scanner_options import add_scanner_options

if TYPE_CHECKING:
    from spscanner_lab.evidence.questions import Document
    from spscanner_rag.scanner import Scanner
    from spscanner_rag.scorers import Read

QUESTIONS = (
    "Who persuaded Anne to give up her engagement?",
    "Where does the family move when money runs short?",
    "How is the girl hurt at the seaside?",
    "What does the captain confess in his letter?",
    "Why does the baronet let his house?",
    "Who turns out to be after the family's title?",
    "What does the nurse tell the widow?",
    "How do the sisters differ in their hopes?",
)
"""In a reader's own words, about the text that `--text` names by default."""

PERSUASION = Path("examples/data/persuasion.txt")
BEST = 10
MEASURES = ("recall@10", "ndcg@10")
VECTORS = "vectors of all-MiniLM-L6-v2"


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `later-questions`."""
    command = commands.add_parser(
        "later-questions", help="a prepared text asked again: seconds and recall"
    )
    add = command.add_argument
    add("--text", type=Path, default=PERSUASION, help="the text that is asked of")
    add("--read", nargs="+", default=["all", "auto", "0.1", "0"])
    add("--data", nargs="*", type=Path, default=[], help="questions with evidence")
    add("--questions", type=int, default=8, help="at most, of each document")
    add("--repeats", type=int, default=3, help="times that all questions are asked")
    add_scanner_options(command)
    command.set_defaults(measure=measure)
    return [command]


def measure(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Rows for every ``read``, and for a vector store."""
    from spscanner_lab.evidence.questions import read_documents
    from spscanner_rag.apps.cli.model_options import read_of
    from spscanner_rag.scanner import Scanner
    from spscanner_rag.system.threads import use_threads

    use_threads(arguments.threads)
    scanner = Scanner.from_pretrained(
        arguments.model, device="cpu", threads=arguments.threads
    )
    reads = [read_of(value) for value in arguments.read]
    text = arguments.text.read_text(encoding="utf-8")
    rows: dict[str, object] = _seconds(scanner, text, reads, arguments.repeats)
    if arguments.data:
        documents = list(read_documents(arguments.data))
        rows |= _recalls(scanner, documents, reads, arguments.questions)
    return rows, True


def _seconds(
    scanner: "Scanner", text: str, reads: Sequence["Read"], repeats: int
) -> dict[str, object]:
    """The median CPU seconds of a question, and ratios to reading everything."""
    document = scanner.prepare(text)

    def scanning(read: "Read") -> Callable[[str], object]:
        return lambda question: scanner.scan(question, document, read=read)

    asks = {f"read={read}": scanning(read) for read in reads}
    asks[VECTORS] = _vector_store([unit.model_text for unit in document.units])
    seconds: dict[str, list[float]] = {name: [] for name in asks}
    for ask in asks.values():
        ask(QUESTIONS[0])  # kernels are compiled, questions' vectors are not kept
    for _ in range(repeats):
        for question in QUESTIONS[1:]:
            for name, ask in asks.items():
                start = time.process_time()
                ask(question)
                seconds[name].append(time.process_time() - start)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    everything = medians.get("read=all", float("nan"))
    rows: dict[str, object] = {"text": {"tokens": document.n_tokens}}
    for name, median in medians.items():
        rows[name] = {
            "CPU s": median,
            "times faster than all": everything / median,
            "times a vector store": median / medians[VECTORS],
        }
    return rows


def _vector_store(sentences: Sequence[str]) -> Callable[[str], object]:
    """What a vector store does: the best cosines with sentences read alone."""
    import torch

    from spscanner_rag.baselines.embedding_models import installed
    from spscanner_rag.checkpoint.encoder_file import find_encoder

    file, digest = find_encoder(installed("minilm"))
    encoder = file.loaded(digest, "cpu", torch.float32)
    vectors = encoder.vectors(list(sentences))

    def best(question: str) -> object:
        return np.argsort(-vectors.cosines(encoder.question(question)))[:BEST]

    return best


def _recalls(
    scanner: "Scanner",
    documents: Sequence["Document"],
    reads: Sequence["Read"],
    most_questions: int,
) -> dict[str, object]:
    """Recall and nDCG of every ``read``, and differences to reading everything."""
    from spscanner_lab.evaluation.statistics import Sample, estimate, paired_test

    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    doc_ids: dict[str, list[str]] = {}
    for source, doc_id, measures in _measured(
        scanner, documents, reads, most_questions
    ):
        doc_ids.setdefault(source, []).append(doc_id)
        for name, of_read in measures.items():
            for measure_name, value in of_read.items():
                by_source = values.setdefault(measure_name, {}).setdefault(name, {})
                by_source.setdefault(source, []).append(100 * value)
    rows: dict[str, object] = {}
    for measure_name, by_read in values.items():
        samples_by_read = {}
        for name, by_source in by_read.items():
            samples_by_read[name] = {
                source: Sample(numbers, doc_ids[source])
                for source, numbers in by_source.items()
            }
        everything = samples_by_read["read=all"]
        for name, samples in samples_by_read.items():
            difference, p = paired_test(samples, everything)
            rows[f"{measure_name}, {name}"] = {
                "macro mean": estimate(samples)["value"],
                "difference": difference["value"],
                "from": difference["ci_low"] or 0.0,
                "to": difference["ci_high"] or 0.0,
                "p": p,
            }
    return rows


def _measured(
    scanner: "Scanner",
    documents: Sequence["Document"],
    reads: Sequence["Read"],
    most_questions: int,
) -> Iterator[tuple[str, str, dict[str, dict[str, float]]]]:
    """Yield source, document and measures by ``read`` of each answered question."""
    from spscanner_lab.evidence.metrics import ranking_metrics
    from spscanner_rag.results.coverage import Spans, relevant_units

    for document in documents:
        prepared = scanner.prepare(document.text)
        spans = Spans.of(prepared.units)
        answered = [question for question in document.questions if question.evidence]
        for question in answered[:most_questions]:
            relevant = relevant_units(spans.starts, spans.ends, question.evidence)
            if not relevant.any():
                continue
            measures = {}
            for read in reads:
                result = scanner.scan(question.text, prepared, read=read)
                ranking = ranking_metrics(result.logits, relevant, [BEST])
                measures[f"read={read}"] = {name: ranking[name] for name in MEASURES}
            yield document.source, document.doc_id, measures
