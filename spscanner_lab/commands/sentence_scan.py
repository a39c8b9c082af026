"""``spscanner sentence-scan``: train a scan over sentences."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_lab.commands.train import TrainingView
from spscanner_rag.apps.cli.declaring import option
from spscanner_rag.apps.cli.shared_options import THREADS

if TYPE_CHECKING:
    from spscanner_lab.training.sentence_scan_checkpoint import UnseenDocuments


def sentence_scan(
    out: Path = option(..., "Folder for the checkpoint."),
    unseen: list[str] = option(
        ...,
        "Questions, and a checkpoint whose encoder was not trained on them:"
        " ENCODER=FILE; or FILE alone, if --base's own was not.",
        "[ENCODER=]FILE...",
    ),
    base: str | None = option(
        None, "Checkpoint that gets the scan; default: the bundled one."
    ),
    steps: int = option(600, "Training steps.", lowest=1),
    questions: int = option(8, "Most questions of each document.", lowest=1),
    weigh: int = option(
        8, "Most held-out questions from each source for weighting.", lowest=1
    ),
    seed: int = option(0, "Seed for every random choice."),
    threads: int | None = THREADS,
    progress: bool = option(True, "Show progress."),
) -> None:
    """Train a scan over sentences, which chooses what the token reader reads.

    Its inputs are scores of an encoder and of words. An encoder's own training texts
    have better scores than others, so train several encoders, each without a share of
    the texts, and give each the texts that it has not seen. A tenth of the documents is
    left out, as by `spscanner encoder`, and the scan is weighed on it.
    """
    from spscanner_lab.training.sentence_scan import ScanNumbers
    from spscanner_lab.training.sentence_scan_checkpoint import (
        put_scan_into_checkpoint,
    )
    from spscanner_rag.system.threads import use_threads

    use_threads(threads)
    put_scan_into_checkpoint(
        base,
        _parts_of(unseen),
        out,
        ScanNumbers(steps=steps, seed=seed),
        (questions, weigh),
        TrainingView(steps, progress).preparing,
    )


def _parts_of(unseen: Sequence[str]) -> "list[UnseenDocuments]":
    """Read the documents of each ``ENCODER=FILE``."""
    from spscanner_lab.evidence.questions import read_documents
    from spscanner_lab.training.sentence_scan_checkpoint import UnseenDocuments

    parts = []
    for pair in unseen:
        encoder, _, file = pair.rpartition("=")
        documents = list(read_documents([Path(file)]))
        path = Path(encoder) if encoder else None
        parts.append(UnseenDocuments(path, documents, Path(file)))
    return parts
