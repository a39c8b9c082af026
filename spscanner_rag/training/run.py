"""A whole training run: data, model, loop, validation, checkpoint and model card."""

import copy
import platform
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, load_checkpoint, save_checkpoint
from spscanner_rag.evaluation.data import Document, read_documents
from spscanner_rag.evaluation.sampling import is_held_out, sample_questions
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.scanner import Scanner
from spscanner_rag.tokenizer_file import TOKENIZER, read_tokenizer
from spscanner_rag.training.examples import ExampleSource
from spscanner_rag.training.loop import StepReport, Trainer
from spscanner_rag.training.model_card import write_model_card
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.teacher import TeacherScores
from spscanner_rag.training.validation import Recall, validate
from spscanner_rag.training.vocabulary import train_tokenizer
from spscanner_rag.weights import read_json


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What a run reads and where it writes."""

    data: Sequence[Path]
    validation: Sequence[Path]
    out: Path
    base: str | None  # a checkpoint to start from
    config: Path | None  # or the shape of a model to start from nothing
    teacher_cache: Path


def start_checkpoint(
    files: RunFiles, recipe: Recipe, documents: Sequence[Document], device: torch.device
) -> Checkpoint:
    """The checkpoint that training starts from, in float32.

    Raises
    ------
    ValueError
        If there is neither or both of a base and a configuration, or one of them is not sound.
    """
    if (files.base is None) == (files.config is None):
        raise ValueError(
            "expected either a base checkpoint to fine-tune or a model configuration to start from nothing"
        )
    if files.base is not None:
        return load_checkpoint(files.base, device=device, dtype=torch.float32, require_head=False)
    assert files.config is not None
    stored = files.out / TOKENIZER  # a resumed run keeps its vocabulary
    if stored.exists():
        tokenizer = read_tokenizer(stored)
    else:
        tokenizer = train_tokenizer((document.text for document in documents), recipe.vocab_size)
        files.out.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(stored))
    shape = read_json(files.config) | {"vocab_size": tokenizer.get_vocab_size()}
    try:
        config = Mamba2Config.from_dict(shape)
    except ValueError as error:
        raise ValueError(f"{files.config}: {error}") from None
    torch.manual_seed(recipe.seed)
    model = ScannerModel(config, match_embedding=recipe.lexical_match, lexical_prior=recipe.lexical_prior)
    settings = ScannerSettings(
        reanchor_tokens=recipe.reanchor_tokens or None, match=recipe.lexical_match, prior=recipe.lexical_prior
    )
    return Checkpoint(model.to(device), settings, tokenizer, str(files.config), files.out, published=False)


class TrainingRun:
    """Training from files to a checkpoint folder.

    Parameters
    ----------
    files : RunFiles
    recipe : Recipe
    device : torch.device

    Raises
    ------
    ValueError
        For data, a base, a configuration or a saved state that cannot be used; nothing is trained then.
    """

    def __init__(self, files: RunFiles, recipe: Recipe, device: torch.device) -> None:
        self.files, self.recipe = files, recipe
        documents, held_out = split_held_out(read_documents(files.data), recipe.held_out_sources)
        held_out += read_documents(files.validation)
        refuse_shared_documents(documents, held_out)
        self.start = start_checkpoint(files, recipe, documents, device)
        self.scanner = Scanner(self.start)
        teacher = TeacherScores(recipe.teacher, files.teacher_cache) if recipe.teacher else None
        self.source = ExampleSource(documents, self.scanner.reading, recipe, teacher)
        self.trainer = Trainer(self.start.model, self.source, recipe, files.out)
        self._held_out = held_out

    def train(
        self,
        on_step: Callable[[StepReport], None],
        on_validation: Callable[[int, dict[str, Recall]], None],
    ) -> dict[str, Recall]:
        """Train to the end, then validate, save the checkpoint and write its model card.

        Returns the last validation's recall by source, empty without validation files.
        """
        recipe = self.recipe
        often = sample_questions(self._held_out, recipe.validation_questions, recipe.seed)
        for report in self.trainer.run():
            on_step(report)
            if often and report.step % recipe.validate_every == 0 and report.step < recipe.steps:
                on_validation(report.step, validate(self.averaged_scanner(), often))
        scanner = self.averaged_scanner()
        recalls = {}
        if self._held_out:
            last = sample_questions(self._held_out, recipe.final_validation_questions, recipe.seed)
            recalls = validate(scanner, last)
            on_validation(self.trainer.step, recalls)
        self._save(scanner, recalls)
        return recalls

    def averaged_scanner(self) -> Scanner:
        """A scanner with the weights that would be saved now."""
        model = copy.deepcopy(self.start.model)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(self.trainer.averaged_weights()[name])
        return Scanner(replace(self.start, model=model.eval()))

    def _save(self, scanner: Scanner, recalls: dict[str, Recall]) -> None:
        summary = self._summary(recalls)
        settings = replace(self.start.settings, training=summary)
        model = scanner.checkpoint.model
        save_checkpoint(self.files.out, model, settings, self.start.tokenizer, dtype=torch.bfloat16)
        write_model_card(self.files.out, model, settings)

    def _summary(self, recalls: dict[str, Recall]) -> dict[str, Any]:
        return {
            "steps": self.trainer.step,
            "hours": round(self.trainer.seconds / 3600, 2),
            "hardware": f"{self.start.model.device.type}, {torch.get_num_threads()} threads, {platform.machine()}",
            "started_from": self.files.base or "nothing",
            "questions_by_source": self.source.questions_by_source,
            "recipe": self.recipe.to_dict() | {"teacher": Path(self.recipe.teacher).name},
            "validation_recall": {
                source: {str(k): round(value, 4) for k, value in recall.items()}
                for source, recall in recalls.items()
            },
        }


def split_held_out(
    documents: Iterable[Document], sources: Collection[str]
) -> tuple[list[Document], list[Document]]:
    """Documents to train on, and the tenth of the given sources' documents to validate on."""
    training: list[Document] = []
    held_out: list[Document] = []
    for document in documents:
        out = document.source in sources and is_held_out(document.doc_id)
        (held_out if out else training).append(document)
    return training, held_out


def refuse_shared_documents(training: Sequence[Document], held_out: Sequence[Document]) -> None:
    """Refuse to validate on a document that is also trained on.

    Raises
    ------
    ValueError
        Naming the first such document.
    """
    texts = {document.text for document in training}
    for document in held_out:
        if document.text in texts:
            raise ValueError(
                f"document {document.doc_id!r} is in the training and in the validation files; take it out of one"
            )
