"""Train a sentence scan, weigh it beside the token reader, and save both."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spscanner_lab.evidence.calibration import fit_platt
from spscanner_lab.evidence.questions import Document
from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training import Notify
from spscanner_lab.training.meaning_scores import ScoredQuestion, score_questions
from spscanner_lab.training.model_card import MODEL_CARD
from spscanner_lab.training.neighbour_weights import fitted_neighbour_weights
from spscanner_lab.training.saved_encoder import save_with_encoder
from spscanner_lab.training.scan_weights import fitted_scan_weights
from spscanner_lab.training.sentence_scan import (
    ScanExample,
    ScanNumbers,
    scan_examples,
    train_sentence_scan,
)
from spscanner_rag.checkpoint.encoder_file import find_encoder
from spscanner_rag.checkpoint.file_names import ENCODER, FILES
from spscanner_rag.checkpoint.load import in_torch
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.mamba2.sentence_scan import SentenceScan
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.outputs import check_results_folder


class UnseenDocuments(NamedTuple):
    """Documents, and an encoder that was not trained on them."""

    encoder: Path | None  # its checkpoint's folder, or its file; None: the base's own
    documents: Sequence[Document]
    file: Path  # that they were read from


def put_scan_into_checkpoint(
    base: str | None,
    parts: Sequence[UnseenDocuments],
    out: Path,
    numbers: ScanNumbers,
    most_questions: tuple[int, int],
    notify: Notify,
) -> None:
    """Train a sentence scan, and save it with a checkpoint that has an encoder.

    The documents that `is_held_out` selects are not trained on; the scan is calibrated
    and weighed on them, with the base's own encoder.

    Parameters
    ----------
    base : str or None
        The checkpoint that gets the scan; None for the bundled one.
    parts : sequence of UnseenDocuments
        What is trained on.
    out : Path
        The folder for the checkpoint.
    numbers : ScanNumbers
        How the scan is trained.
    most_questions : tuple of int
        Maximum number of questions of a document to train on, and of a source to weigh
        on.
    notify : callable
        Called with messages.

    Raises
    ------
    ValueError
        If the base has no encoder, no question has evidence, or a file that is read
        would be replaced.
    """
    inputs: list[str | Path] = [part.file for part in parts]
    inputs += [part.encoder for part in parts if part.encoder is not None]
    if base is not None:
        inputs.append(base)
    check_results_folder(out, [*FILES, MODEL_CARD], inputs)
    scanner = Scanner.from_pretrained(base, dtype="float32", device="cpu")
    meaning = scanner.meaning
    if meaning is None or not scanner.checkpoint.settings.soft:
        raise ValueError(
            f"the checkpoint {scanner.checkpoint.source} has no encoder or no soft"
            " match; expected both: train it with `spscanner encoder` first"
        )
    examples: list[ScanExample] = []
    aside: list[Document] = []
    for part in parts:
        trained = [doc for doc in part.documents if not is_held_out(doc.doc_id)]
        aside += [doc for doc in part.documents if is_held_out(doc.doc_id)]
        notify(f"reading {len(trained):,} documents with {part.encoder or 'its own'}")
        encoder = _encoder_of(part, meaning)
        examples += scan_examples(
            scanner.reading, encoder, trained, most_questions[0], numbers.seed
        )
    scan = train_sentence_scan(examples, numbers, notify)
    scored, _ = score_questions(
        _without_encoder(scanner), meaning, aside, most_questions[1], scan
    )
    questions = [question for question in scored if question.estimates is not None]
    factor, shift = _platt_factors(questions)
    questions = _rescaled(questions, factor, shift)
    weights = fitted_scan_weights(questions, meaning.weights, meaning.cross)
    weights = fitted_neighbour_weights(questions, weights, meaning.cross)
    record = {
        "steps": numbers.steps,
        "seed": numbers.seed,
        "examples_by_source": dict(Counter(example.source for example in examples)),
        "weighed_on": dict(Counter(question.source for question in questions)),
    }
    scan.rescale(factor, shift)
    _save(scanner, scan, weights, record, out)
    notify(f"{out}: weights {weights}")


def _encoder_of(part: UnseenDocuments, meaning: Meaning) -> Meaning:
    """The part's encoder, its cosines on the scale of the base's."""
    if part.encoder is None:
        return meaning
    path = part.encoder
    if path.is_dir():
        path = path / ENCODER
    file, digest = find_encoder(path)
    encoder = file.loaded(digest, "cpu", torch.float32)
    return Meaning(encoder, meaning.weights, weighed=False)


def _without_encoder(scanner: Scanner) -> Scanner:
    """A scanner whose logits are the token reader's alone."""
    checkpoint = replace(scanner.checkpoint, meaning=None, sentence_scan=None)
    return Scanner(checkpoint)


def _platt_factors(questions: Sequence[ScoredQuestion]) -> tuple[float, float]:
    """The factor and the shift with which the scan's logits are calibrated."""
    estimates = []
    for question in questions:
        assert question.estimates is not None
        estimates.append(question.estimates)
    relevant = np.concatenate([question.relevant for question in questions])
    return fit_platt(np.concatenate(estimates), relevant)


def _rescaled(
    questions: Sequence[ScoredQuestion], factor: float, shift: float
) -> list[ScoredQuestion]:
    """The questions with the logits of the calibrated scan."""
    result = []
    for question in questions:
        assert question.estimates is not None
        estimates = np.asarray(factor * question.estimates + shift, np.float32)
        result.append(question._replace(estimates=estimates))
    return result


def _save(
    scanner: Scanner,
    scan: SentenceScan,
    weights: MeaningWeights,
    record: dict[str, object],
    out: Path,
) -> None:
    checkpoint = in_torch(scanner.checkpoint)
    assert checkpoint.encoder_file is not None
    training = checkpoint.settings.training | {"sentence_scan": record}
    settings = replace(
        checkpoint.settings,
        meaning=weights,
        sentence_scan=scan.shape,
        training=training,
    )
    encoder = checkpoint.encoder_file._replace(sentence_scan=scan.state_dict())
    save_with_encoder(out, checkpoint, settings, encoder)
