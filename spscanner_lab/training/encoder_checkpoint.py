"""Train an encoder and a cross-reader, and put them into a scanner's checkpoint."""

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training import Notify
from spscanner_lab.training.cross_reader import CrossTraining
from spscanner_lab.training.encoder import EncoderTraining
from spscanner_lab.training.encoder_data import Source, read_sources
from spscanner_lab.training.finetuning import Finetuning
from spscanner_lab.training.meaning_scores import score_questions
from spscanner_lab.training.meaning_weights import fitted_weights
from spscanner_lab.training.model_card import MODEL_CARD
from spscanner_lab.training.saved_encoder import save_with_encoder
from spscanner_rag.checkpoint.encoder_file import EncoderFile, find_encoder
from spscanner_rag.checkpoint.file_names import FILES
from spscanner_rag.checkpoint.load import in_torch
from spscanner_rag.checkpoint.save import quantized
from spscanner_rag.encoder.bert import restored
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.unrelated import unrelated_cosines
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.outputs import check_results_folder

STEPS_PER_MESSAGE = 20

_STATES = ("encoder_training", "cross_training")


@dataclass(frozen=True, slots=True)
class EncoderNumbers:
    """The numbers of an encoder's training and weighting.

    With 0 ``steps`` the encoder is taken as it is, and with 0 ``cross_steps`` as well,
    so is its cross-reader, if any.
    """

    steps: int = 600
    cross_steps: int = 0
    documents: int = 100  # at most, of each source, to train on
    questions: int = 8  # at most, of each source, to weigh on
    seed: int = 0


class _TrainedEncoder(NamedTuple):
    """An encoder's file, and the steps that it was trained for."""

    file: EncoderFile
    steps: int
    cross_steps: int


def put_into_checkpoint(
    model: str | Path,
    base: str | None,
    documents: Sequence[Document],
    out: Path,
    numbers: EncoderNumbers,
    notify: Notify,
) -> None:
    """Train an encoder and a cross-reader, and put them into a checkpoint.

    They are weighed beside a scanner and saved with it to the checkpoint ``out``. An
    interrupted training resumes from the states in ``out``, which are removed at the
    end. Errors in model, base and documents are raised before anything is written.
    """
    inputs = [str(model)] if base is None else [str(model), base]
    check_results_folder(out, [*FILES, MODEL_CARD], inputs)
    scanner = Scanner.from_pretrained(base, dtype="float32", device="cpu", encoder=None)
    file, digest = find_encoder(model)
    notify("cutting and tokenizing the documents")
    encoder = file.loaded(digest, "cpu", torch.float32)
    sources, aside = read_sources(documents, encoder, numbers.documents, numbers.seed)
    out.mkdir(parents=True, exist_ok=True)
    trained = _trained(file, sources, out, numbers, notify)
    file = _as_stored(trained.file)
    encoder = file.loaded("", "cpu", torch.float32)
    cross = file.loaded_cross("cpu", torch.float32)
    mean, deviation = unrelated_cosines(encoder)
    start = MeaningWeights(mean=mean, deviation=deviation)
    notify(f"reading up to {numbers.questions} held-out questions of each source")
    questions, elsewhere = score_questions(
        scanner, Meaning(encoder, start), aside, numbers.questions
    )
    weights = fitted_weights(questions, start, elsewhere, cross)
    record = {
        "started_from": Path(model).name if Path(model).is_dir() else str(model),
        "steps": trained.steps,
        "cross_steps": trained.cross_steps,
        "seed": numbers.seed,
        "documents_by_source": {name: len(source) for name, source in sources.items()},
        "weighed_on": dict(Counter(question.source for question in questions)),
    }
    checkpoint = in_torch(scanner.checkpoint)
    training = checkpoint.settings.training | {"encoder": record}
    settings = replace(checkpoint.settings, meaning=weights, training=training)
    save_with_encoder(out, checkpoint, settings, file)
    for state in _STATES:
        shutil.rmtree(out / state, ignore_errors=True)
    notify(f"{out}: weights {weights}")


def _trained(
    file: EncoderFile,
    sources: dict[str, Source],
    out: Path,
    numbers: EncoderNumbers,
    notify: Notify,
) -> _TrainedEncoder:
    """Train what has steps to train, from the states of the trainings in ``out``."""
    encoder_state, cross_state = _STATES
    steps = numbers.steps
    if steps:
        training = EncoderTraining(file, sources, numbers.seed)
        steps = _run(training, out / encoder_state, steps, notify)
        file = file._replace(weights=training.trained(), cross=None)
    cross_steps = numbers.cross_steps
    if cross_steps:
        cross_training = CrossTraining(file, sources, numbers.seed)
        cross_steps = _run(cross_training, out / cross_state, cross_steps, notify)
        file = file._replace(cross=cross_training.cross())
    return _TrainedEncoder(file, steps, cross_steps)


def _run(training: Finetuning, state: Path, steps: int, notify: Notify) -> int:
    """Train to the end, and return the steps: more if a saved state had more."""
    losses: list[float] = []
    trainer = training.trainer(state, steps)
    for report in trainer.run():
        losses.append(report.loss)
        if report.step % STEPS_PER_MESSAGE == 0:
            mean_loss = np.mean(losses[-STEPS_PER_MESSAGE:])
            notify(f"step {report.step:,} of {steps:,}  loss {mean_loss:.3f}")
    return trainer.step


def _as_stored(file: EncoderFile) -> EncoderFile:
    """The file with the rounded weights that a checkpoint stores."""
    file = file._replace(weights=quantized(restored(file.weights)))
    if file.cross is not None:
        file = file._replace(cross=quantized(restored(file.cross)))
    return file
