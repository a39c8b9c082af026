"""The language-model stage: the next token of plain text, from files to a base for the evidence stage."""

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Any

import torch

from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.lab.evidence.questions import Document, refuse_names_of_means
from spscanner_rag.lab.evidence.sampling import is_set_aside
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.decontamination import find_shared
from spscanner_rag.lab.training.data.text_files import (
    QUESTION_SUFFIXES,
    TEXT_SUFFIXES,
    read_texts,
    refuse_other_files,
    sampled_documents,
    source_of,
)
from spscanner_rag.lab.training.data.token_cache import TokenCache, open_token_cache
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.language_model_objective import (
    ALL_SOURCES,
    LanguageModelObjective,
    held_out_loss,
)
from spscanner_rag.lab.training.stages.stage import Stage, Validation
from spscanner_rag.lab.training.start import RunFiles, start_language_model

VOCABULARY_CHARACTERS = 64_000_000
"""Characters of the corpus, evenly from its files, that the vocabulary of a model from nothing is learnt from."""


class LanguageModelStage(Stage):
    """Trains a model to predict the next token of ``--data``: plain text, or the documents of question files.

    Raises ``ValueError`` also for a teacher or ``--text``, which this stage does not use.
    """

    measured = "validation_loss"

    def __init__(self, files: RunFiles, recipe: Recipe, device: torch.device, notify: Notify) -> None:
        super().__init__(files, recipe, device, notify)
        if recipe.teacher or files.text:
            given = "a teacher" if recipe.teacher else "--text"
            raise ValueError(
                f'got {given}, which the stage "language-model" does not use; expected --data with plain text '
                'only, or stage = "evidence"'
            )
        if not files.data:
            raise ValueError("got nothing to train on; expected --data with plain text")
        refuse_other_files((*files.data, *files.validation), (*TEXT_SUFFIXES, *QUESTION_SUFFIXES))
        refuse_names_of_means(map(source_of, files.validation), "validation", {ALL_SOURCES})
        if recipe.held_out_sources:
            refuse_names_of_means(map(source_of, files.data), "--data", {ALL_SOURCES})
        self._shared: Collection[tuple[str, str]] = ()  # until it is known, `_trained_on` leaves out none
        self._shared = find_shared(self._trained_on, self.held_out, recipe.max_shared_share, notify)
        self._tokens: TokenCache | None = None
        self._start: Checkpoint | None = None

    @property
    def held_out(self) -> Iterable[Document]:
        """Documents to validate on."""
        yield from chain.from_iterable(map(read_texts, self._files.validation))
        if self._recipe.held_out_sources:
            yield from filter(self._is_held_out, self._all_documents())

    def start(self) -> Checkpoint:
        """The language model to train."""
        if self._files.base is None:
            self._notify("learning a vocabulary, unless OUT has one")
        sample = filter(self._is_trained_on, sampled_documents(self._files.data, VOCABULARY_CHARACTERS))
        self._start = start_language_model(self._files, self._recipe, sample, self._device)
        return self._start

    def objective(self, start: Checkpoint) -> LanguageModelObjective:
        """The next token."""
        self._tokens = open_token_cache(
            self._files.data,
            start.tokenizer,
            self._files.out / "tokens",
            self._notify,
            self._is_trained_on,
            f"without {sorted(self._recipe.held_out_sources)} {sorted(self._shared)}",
        )
        return LanguageModelObjective(self._tokens, self._recipe)

    def validate(self, checkpoint: Checkpoint, final: bool) -> Validation | None:
        """Mean loss of a token of held-out text."""
        if not self._held_out_tokens:
            return None
        measures = held_out_loss(checkpoint.model, self._held_out_tokens, self._recipe)
        lines = tuple(
            f"loss  {values['nats']:.4f} nats a token, perplexity {values['perplexity']:,.1f}  {source}"
            for source, values in measures.items()
        )
        return Validation(-measures["all"]["nats"], measures, lines)

    def trained_on(self) -> dict[str, Any]:
        """Numbers of tokens, and of documents that were left out."""
        assert self._tokens is not None
        return {"tokens_by_source": self._tokens.tokens_by_source, "left_out": len(self._shared)}

    @cached_property
    def _held_out_tokens(self) -> list[TokenCache]:
        assert self._start is not None
        tokenizer, folder, held_out = self._start.tokenizer, self._files.out / "tokens", []
        if self._files.validation:
            held_out.append(open_token_cache(self._files.validation, tokenizer, folder, self._notify))
        if self._recipe.held_out_sources and any(map(self._is_held_out, self._all_documents())):
            key = f"only {sorted(self._recipe.held_out_sources)}"
            held_out.append(
                open_token_cache(self._files.data, tokenizer, folder, self._notify, self._is_held_out, key)
            )
        return held_out

    def _trained_on(self) -> Iterator[Document]:
        return filter(self._is_trained_on, self._all_documents())

    def _all_documents(self) -> Iterator[Document]:
        """Documents of ``--data``, held-out ones included."""
        return chain.from_iterable(map(read_texts, self._files.data))

    def _is_held_out(self, document: Document) -> bool:
        return is_set_aside(document, self._recipe.held_out_sources)

    def _is_trained_on(self, document: Document) -> bool:
        return not self._is_held_out(document) and (document.source, document.doc_id) not in self._shared
