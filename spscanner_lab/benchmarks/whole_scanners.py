"""The speed of complete scanners: several questions, short texts, and an embedding."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_lab.benchmarks.reading_programs import (
    OURS,
    NotMeasuredError,
    kernels_of,
    our_model,
)
from spscanner_lab.benchmarks.report import Row, median_seconds, seconds_of, too_long
from spscanner_lab.benchmarks.texts import (
    QUESTION,
    QUESTIONS,
    short_texts,
    text_of_tokens,
)

if TYPE_CHECKING:
    import torch

    from spscanner_rag import Scanner

Program = Callable[[float], object]
"""Reads a share of a text: first a small share, to warm up and to estimate the time
for the whole text."""


def scanner_rows(
    size: str,
    folder: Path,
    device: torch.device,
    dtype: str,
    options: argparse.Namespace,
) -> dict[str, Row]:
    """Rows of a complete scanner, with the first of our backends that runs here."""
    import torch

    reason = "no time left"
    kinds = [kind for kind in options.kinds if kind in OURS]
    for kind in kinds or OURS:
        if time.monotonic() > options.end:
            break
        try:
            scanner = _scanner(size, kind, folder, device, getattr(torch, dtype))
        except NotMeasuredError as error:
            reason = str(error)
            continue
        rows: dict[str, Row] = {}
        if "questions" in options.parts:
            rows |= _question_rows(scanner, options)
        if "embedding" in options.parts:
            rows |= _embedding_rows(scanner, options)
        return rows
    return {"whole scanner": f"not measured: {reason}"}


def _scanner(
    size: str, kind: str, folder: Path, device: torch.device, dtype: torch.dtype
) -> Scanner:
    """The bundled scanner for "default", else one with random weights from a folder.

    Both have the same tokenizer.
    """
    from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, load_checkpoint
    from spscanner_rag.scanner import Scanner

    bundled = load_checkpoint(device=device, dtype=dtype)
    if size == "default":
        bundled.model.use_kernels(kernels_of(kind, device))
        return Scanner(bundled)
    model = our_model(kind, folder, device, dtype)
    settings = ScannerSettings()
    tokenizer = bundled.tokenizer
    return Scanner(
        Checkpoint(
            model=model,
            settings=settings,
            tokenizer=tokenizer,
            source=size,
            folder=folder,
            published=False,
        )
    )


def _question_rows(scanner: Scanner, options: argparse.Namespace) -> dict[str, Row]:
    """Several questions about a document, and many short documents.

    These are compared with one that is as long as all.
    """

    def scan(questions: int, texts: list[str], share: float) -> object:
        pairs = []
        for text in texts:
            part = text[: round(len(text) * share)]
            for question in islice(cycle(QUESTIONS), questions):
                pairs.append((question, part))
        return scanner.scan_many(pairs)

    tokens = options.question_tokens
    text = text_of_tokens(tokens)
    programs: dict[str, Program] = {}
    for number in (1, *options.questions):
        name = f"{number} question{'s' * (number > 1)} on {tokens:,} tokens"
        programs[name] = partial(scan, number, [text])
    rows = _timed(scanner, programs, options)
    texts = short_texts(options.short_documents, options.short_tokens)
    name = f"{options.short_documents:,} documents of {options.short_tokens:,} tokens"
    programs = {
        "one document as long as the next": partial(scan, 1, ["".join(texts)]),
        name: partial(scan, 1, texts),
    }
    return rows | _timed(scanner, programs, options)


def _embedding_rows(scanner: Scanner, options: argparse.Namespace) -> dict[str, Row]:
    """A scan, and embedding models on units, all from the plain text."""
    tokens = options.embedded_tokens
    text = text_of_tokens(tokens)

    def scan(share: float) -> object:
        return scanner.scan(QUESTION, text[: round(len(text) * share)])

    programs: dict[str, Program] = {f"{tokens:,} tokens, scan": scan}
    reasons: dict[str, Row] = {}
    for name in options.embedders:
        row_name = f"{tokens:,} tokens, {name}"
        try:
            programs[row_name] = _embedding_program(name, text, scanner, options)
        except (ImportError, OSError, ValueError) as error:
            reasons[row_name] = f"not measured: {error}"
    return _timed(scanner, programs, options) | reasons


def _embedding_program(
    name: str, text: str, scanner: Scanner, options: argparse.Namespace
) -> Program:
    """Embeds the units of a part of a text by a model of sentence-transformers."""
    from spscanner_rag.baselines import Dense

    kind = scanner.device.type
    dense = Dense(
        name,
        options.embedded_unit,
        device=kind,
        trust_remote_code=options.trust_remote_code,
    )
    model = dense.sentence_transformer
    if model is None:
        raise ValueError(f"{name!r} is no model of sentence-transformers")
    if kind == "cuda":
        model.to(scanner.dtype)  # on a CPU it stays in float32
    batch_size = 256 if kind == "cuda" else 32

    def embed(share: float) -> object:
        part = text[: round(len(text) * share)]
        passages = dense.passages_of(part, dense.units_of(part))
        return model.encode(
            passages,
            batch_size=batch_size,
            convert_to_numpy=True,
            show_progress_bar=False,
        )

    return embed


def _timed(
    scanner: Scanner, programs: Mapping[str, Program], options: argparse.Namespace
) -> dict[str, Row]:
    """Milliseconds of each program, and its time as a multiple of the first one's."""
    expected = {}
    runs = {}
    for name, program in programs.items():
        expected[name] = 20 * seconds_of(partial(program, 0.05), scanner.device)
        if expected[name] <= options.longest:
            runs[name] = partial(program, 1.0)
    seconds = median_seconds(runs, options.repeats, scanner.device)
    first = seconds.get(next(iter(programs)), math.nan)
    rows: dict[str, Row] = {}
    for name in programs:
        if name in seconds:
            times = seconds[name] / first
            rows[name] = {"ms": 1e3 * seconds[name], "times the first": times}
        else:
            rows[name] = too_long(expected[name])
    return rows
