"""What questions of many words cost the scanner, and what they do to its recall."""

import argparse
import statistics
import time
from pathlib import Path

from spscanner_rag.evidence.coverage import Spans, relevant_units
from spscanner_rag.evidence.questions import read_documents
from spscanner_rag.evidence.sampling import sample_questions
from spscanner_rag.scan.prepare import repeats_every
from spscanner_rag.scanner import Scanner

WORDS = (0, 50, 200, 500, 1000, 2000)


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> list[argparse.ArgumentParser]:
    """Add `long-queries`."""
    command = commands.add_parser("long-queries", help="the scanner on questions of 50 to 2,000 words")
    command.add_argument("--data", type=Path, nargs="+", required=True, metavar="FILE")
    command.add_argument("--questions", type=int, default=20, help="questions of each source")
    command.set_defaults(measure=measure_long_queries)
    return [command]


def measure_long_queries(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Each question after so many words of another document of its source; there are no bounds."""
    scanner = Scanner.from_pretrained()
    reanchor = scanner.reading.reanchor_tokens
    documents = list(read_documents(arguments.data))
    others: dict[str, list[str]] = {}
    for document in documents:
        others.setdefault(document.source, []).append(document.text)
    rows: dict[str, object] = {}
    sampled = sample_questions(documents, arguments.questions)
    for words in WORDS:
        recalls, lengths, read, seconds = [], [], [], []
        for source, asked in sampled.items():
            for number, (document, question) in enumerate(asked):
                other = next(t for t in others[source][number:] + others[source] if t != document.text)
                query = " ".join([*other.split()[:words], question.text])
                begun = time.perf_counter()
                result = scanner.scan(query, document.text)
                seconds.append(time.perf_counter() - begun)
                relevant = relevant_units(*Spans(result.starts, result.ends), question.evidence)
                if not relevant.any():
                    continue
                recalls.append(relevant[result.picks(10)].sum() / relevant.sum())
                tokens, own = scanner.count_tokens(document.text), scanner.count_tokens(query) + 1
                every = repeats_every(reanchor, own)
                lengths.append(own)
                read.append((tokens + own * (1 + (tokens // every if every else 0))) / tokens)
        rows[f"+{words} words"] = {
            "query tokens": statistics.mean(lengths), "recall@10": 100 * statistics.mean(map(float, recalls)),
            "read/tokens": statistics.mean(read), "seconds": statistics.mean(seconds), "questions": len(recalls),
        }  # fmt: skip
    return rows, True
