"""Rows of whole scanners: several questions on one document, and many short documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.clock import Row, median_seconds, seconds_of, too_long
from benchmarks.example_text import QUESTION, QUESTIONS, short_texts, text_of_tokens
from benchmarks.reading_kinds import kernels_of, load_ours

if TYPE_CHECKING:
    import torch

    from spscanner_rag import Scanner


def scanner_of(size: str, kind: str, folder: Path, device: torch.device, dtype: torch.dtype) -> Scanner:
    """The bundled scanner for "default", else one with the random weights in a folder and the same tokenizer.

    Raises `NotMeasuredError`.
    """
    from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, load_checkpoint, locate
    from spscanner_rag.checkpoint.file_access import TOKENIZER
    from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
    from spscanner_rag.scanner import Scanner

    if size == "default":
        kernels = kernels_of(kind, device)
        checkpoint = load_checkpoint(device=device, dtype=dtype)
        checkpoint.model.use_kernels(kernels)
        return Scanner(checkpoint)
    model = load_ours(kind, folder, device, dtype)
    tokenizer = read_tokenizer(locate(None) / TOKENIZER)
    return Scanner(Checkpoint(model, ScannerSettings(), tokenizer, size, folder, published=False))


class Scans:
    """Repeatable scans by name, and the number of tokens that each reads."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.tokens: dict[str, int] = {}
        self.runs: dict[str, Callable[[], object]] = {}

    def add(self, name: str, pairs: Sequence[tuple[str, str]]) -> None:
        self.runs[name] = partial(self._scan, name, pairs)

    def _scan(self, name: str, pairs: Sequence[tuple[str, str]]) -> None:
        def progress(done: int, _: int) -> None:
            self.tokens[name] = done  # includes the questions wherever they are repeated

        self.scanner.scan_many(pairs, progress=progress)


def question_rows(
    scanner: Scanner, tokens: int, numbers: Sequence[int], repeats: int, longest: float
) -> dict[int, Row]:
    """Rows of several questions on one document, which is segmented and tokenized once for all of them."""
    text = text_of_tokens(tokens)
    scans = Scans(scanner)
    scans.add("1", [(QUESTION, text)])
    one = seconds_of(scans.runs["1"], scanner.device)  # the warm-up, too
    possible = [number for number in numbers if number * one <= longest]
    for number in possible:
        questions = islice(cycle(QUESTIONS), number)
        scans.add(str(number), [(question, text) for question in questions])
    seconds = median_seconds(scans.runs, repeats if possible else 0, scanner.device)
    rows: dict[int, Row] = {}
    for number in numbers:
        if number not in possible:
            rows[number] = too_long(number * one)
            continue
        taken = seconds[str(number)]
        rows[number] = {
            "ms": 1e3 * taken,
            "tokens/s": scans.tokens[str(number)] / taken,
            "times one question": taken / seconds["1"],
        }
    return rows


def short_document_row(scanner: Scanner, documents: int, tokens: int, repeats: int, longest: float) -> Row:
    """The row of many short documents at once, against one document as long as all of them."""
    pairs = [(QUESTION, text) for text in short_texts(documents, tokens)]
    scans = Scans(scanner)
    share = max(1, documents // 16)
    scans.add("some", pairs[:share])
    expected = seconds_of(scans.runs.pop("some"), scanner.device) * documents / share  # the warm-up, too
    if expected > longest:
        return too_long(expected)
    scans.add("short", pairs)
    scans.add("one", [(QUESTION, text_of_tokens(documents * tokens))])
    seconds = median_seconds(scans.runs, repeats, scanner.device)
    rates = {name: scans.tokens[name] / taken for name, taken in seconds.items()}
    return {
        "ms": 1e3 * seconds["short"],
        "tokens/s": rates["short"],
        "documents/s": documents / seconds["short"],
        "over tokens/s of one document": rates["short"] / rates["one"],
    }
