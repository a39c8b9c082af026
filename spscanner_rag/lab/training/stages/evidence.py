"""The evidence stage: questions with known evidence, from files to a scanner."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.checkpoint.save import save_checkpoint
from spscanner_rag.lab.evidence.questions import (
    Asked,
    Document,
    by_document,
    is_held_out,
    read_documents,
    refuse_names_of_means,
    sample_questions,
)
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.columns import PassageDraw
from spscanner_rag.lab.training.data.decontamination import find_shared
from spscanner_rag.lab.training.data.documents import TEXT_SUFFIXES, DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.loop import Objective
from spscanner_rag.lab.training.model_card import write_model_card
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.calibration import calibrate, loss_shift, validate
from spscanner_rag.lab.training.stages.loss import EvidenceObjective
from spscanner_rag.lab.training.start import RunFiles, start_checkpoint
from spscanner_rag.scanner import Scanner

CHOICE_CUTOFF = 10  # weights are chosen by macro recall at this many sentences

_SHIFT_STEPS = 3  # steps whose examples decide the shift of a base's logits in the loss


@dataclass(frozen=True, slots=True)
class Validation:
    """Measures of a model on documents that it is not trained on."""

    choice: float  # the one number that weights are chosen by: higher is better
    measures: dict[str, dict[str, float]]  # by source and name
    lines: tuple[str, ...]  # the measures as text for people to read

    @classmethod
    def of(
        cls, choice: float, measures: dict[str, dict[str, float]], title: str, mark: str = ""
    ) -> "Validation":
        """The measures, shares of 1, with a line for each source, in which names begin with ``mark``."""
        lines = (
            f"{title}  {'  '.join(f'{mark}{k} {100 * value:5.1f}' for k, value in values.items())}  {source}"
            for source, values in measures.items()
        )
        return cls(choice, measures, tuple(lines))


class EvidenceStage:
    """Trains a scanner on questions of ``--data``."""

    measured = "validation_recall"  # the key of the validation's measures in the checkpoint's training record

    def __init__(self, files: RunFiles, recipe: Recipe, device: torch.device, notify: Notify) -> None:
        self._files, self._recipe, self._device, self._notify = files, recipe, device, notify
        _check_files(files)
        self.held_out: list[Document] = []
        training = set_aside(read_documents(files.data), recipe.held_out_sources, self.held_out)
        self._documents = DocumentStore(training, files.out)
        self.held_out += read_documents(files.validation)
        refuse_names_of_means((document.source for document in self.held_out), "validation")
        self._shared = find_shared(self._documents, self.held_out, notify)
        self._documents.leave_out(self._shared)
        self._drawn: ExampleSource | PassageDraw | None = None  # what the objective draws from

    def start(self) -> Checkpoint:
        """The scanner to train, in float32, on the device to train on."""
        return start_checkpoint(self._files, self._recipe, self._documents, self._device)

    def objective(self, start: Checkpoint) -> Objective:
        """The relevance of sentences."""
        recipe = self._recipe
        self._drawn = source = ExampleSource(self._documents, Scanner(start).reading, recipe)
        shift = 0.0
        if self._files.base is not None and start.has_head:
            numbers = range(_SHIFT_STEPS * recipe.sequences_per_step)
            first = [source.example(number, min(recipe.sequence_tokens)) for number in numbers]
            shift = loss_shift(start.model, first, recipe.positive_weight, recipe.tokens_per_pass)
        return EvidenceObjective(source, recipe, shift)

    def finish(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint, calibrated if the recipe has ``calibration_questions``; called before it is saved."""
        most = self._recipe.calibration_questions
        if most:
            fitted = calibrate(Scanner(checkpoint), self._labelled(most))
            self._notify(
                "not calibrated: too few questions, or their evidence scores no higher than the rest"
                if fitted is None
                else f"calibrated: logits times {fitted[0]:.2f} {fitted[1]:+.2f}"
            )
        return checkpoint

    def _labelled(self, most: int) -> Iterator[Asked]:
        bare = [self._documents.without_text(number) for number in range(len(self._documents))]
        numbers = {id(document): number for number, document in enumerate(bare)}
        asked = sample_questions(bare, most, self._recipe.seed)
        for document, questions in by_document(chain.from_iterable(asked.values())):
            whole = self._documents.document(numbers[id(document)])
            yield from ((whole, question) for question in questions)

    def validate(self, checkpoint: Checkpoint, final: bool) -> Validation | None:
        """Recall of evidence sentences."""
        sample = self._validation_sample(final)
        if not sample:
            return None
        recalls = validate(Scanner(checkpoint), sample)
        measures = {source: {str(k): value for k, value in own.items()} for source, own in recalls.items()}
        return Validation.of(recalls["macro"][CHOICE_CUTOFF], measures, "recall", "@")

    def save(self, checkpoint: Checkpoint) -> None:
        """Write checkpoint and model card."""
        folder, model, settings = self._files.out, checkpoint.model, checkpoint.settings
        save_checkpoint(
            folder, model, settings, checkpoint.tokenizer, torch.bfloat16,
            word_vectors=checkpoint.word_vectors, encoder=checkpoint.encoder_file,
        )  # fmt: skip
        write_model_card(folder, model, settings, checkpoint.word_vectors)

    def trained_on(self) -> dict[str, Any]:
        """Numbers of questions, and of documents that were left out."""
        assert self._drawn is not None
        return {"questions_by_source": self._drawn.questions_by_source, "left_out": len(self._shared)}

    def _validation_sample(self, final: bool) -> dict[str, list[Asked]]:
        recipe = self._recipe
        most = recipe.final_validation_questions if final else recipe.validation_questions
        return sample_questions(self.held_out, most, recipe.seed)


def set_aside(
    documents: Iterable[Document], sources: Collection[str], held_out: list[Document]
) -> Iterator[Document]:
    """Documents to train on; a tenth of the given sources' documents go into ``held_out`` instead."""
    for document in documents:
        if document.source in sources and is_held_out(document.doc_id):
            held_out.append(document)
        else:
            yield document


def _check_files(files: RunFiles) -> None:
    if not files.data:
        raise ValueError("got nothing to train on; expected --data with questions")
    for path in chain(files.data, files.validation):
        if not path.is_file():
            raise ValueError(f"{path}: no such file; expected questions in JSONL, as the README describes")
        if path.name.endswith(TEXT_SUFFIXES):
            raise ValueError(
                f"{path}: got plain text; expected questions, which `spscanner synthesize` makes"
            )
