"""How a checkpoint reads: a text cut, tokenized and laid out with the question, as its training had it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.text.lexical import LexicalIndex, LexicalMatch, match_query
from spscanner_rag.text.lexical import index_words as index_words_of
from spscanner_rag.text.token_stream import (
    DocumentTokens,
    EndRule,
    build_stream,
    tokenize_question,
    tokenize_units,
)
from spscanner_rag.text.units import Segmenter, Unit

REANCHOR_QUESTIONS = 4
"""The question is not repeated before this many times its own length has passed, however short the checkpoint's
``reanchor_tokens``: a very long question would otherwise multiply the work."""


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A text cut into units and tokenized: everything that does not depend on the question."""

    units: Sequence[Unit]
    tokens: DocumentTokens
    words: LexicalIndex | None

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where units start in the caller's text: (units,)."""
        return np.fromiter((unit.start for unit in self.units), np.int64, len(self.units))

    @property
    def ends(self) -> NDArray[np.int64]:
        """Where units end, exclusive: (units,)."""
        return np.fromiter((unit.end for unit in self.units), np.int64, len(self.units))


@dataclass(frozen=True, slots=True)
class QueryOnText:
    """A question laid over a text: everything but the choice of which units to read."""

    question_ids: NDArray[np.int32]  # (question tokens,)
    token_classes: NDArray[np.uint8] | None  # (document tokens,)
    prior: NDArray[np.float32] | None  # (units, lexical scores)


@dataclass(frozen=True, slots=True)
class Reading:
    """What stays the same from text to text.

    Parameters
    ----------
    tokenizer : Tokenizer
    segmenter : Segmenter
    end_rule : "contained" or "last_character"
        On which token a unit's logit sits: the published scanners' rule or ours.
    reanchor_tokens : int, optional
        The question is repeated at a unit start after this many document tokens; None never.
    lexical_match, lexical_prior, lexical_surroundings : bool
        Whether the model wants match classes, a lexical score per unit, and those of its surroundings beside it.
    lexical_least_units : int, default 0
        A text of fewer units is matched with the question as if it had so many.
    """

    tokenizer: Tokenizer
    segmenter: Segmenter
    end_rule: EndRule
    reanchor_tokens: int | None = None
    lexical_match: bool = False
    lexical_prior: bool = False
    lexical_surroundings: bool = False
    lexical_least_units: int = 0

    def prepare(self, text: str, units: Sequence[Unit] | None = None) -> PreparedText:
        """Cut (unless ``units`` are given) and tokenize a text."""
        if units is None:
            units = self.segmenter.segment(text)
        tokens = tokenize_units(self.tokenizer, units, self.end_rule)
        wants_words = self.lexical_match or self.lexical_prior
        return PreparedText(
            units, tokens, index_words_of([unit.model_text for unit in units]) if wants_words else None
        )

    def lay(self, query: str, text: PreparedText) -> QueryOnText:
        """Tokenize a question and match it with a text."""
        question_ids = tokenize_question(self.tokenizer, query)
        if text.words is None:
            return QueryOnText(question_ids, None, None)
        match = match_query(
            text.words,
            query,
            text.tokens.starts,
            text.tokens.ends,
            surroundings=self.lexical_surroundings,
            least_units=self.lexical_least_units,
        )
        return QueryOnText(
            question_ids,
            match.token_classes if self.lexical_match else None,
            self._scores(match) if self.lexical_prior else None,
        )

    def _scores(self, match: LexicalMatch) -> NDArray[np.float32]:
        """The lexical scores that the model wants: (units, scores)."""
        own = match.prior[:, None]
        return own if match.surroundings is None else np.concatenate([own, match.surroundings], axis=1)

    def sequence(
        self, laid: QueryOnText, text: PreparedText, first: int = 0, last: int | None = None
    ) -> TokenSequence:
        """The tokens of the question and of units ``first`` to ``last`` (inclusive; None: to the end)."""
        last = len(text.units) - 1 if last is None else last
        every = repeats_every(self.reanchor_tokens, len(laid.question_ids))
        stream = build_stream(
            laid.question_ids,
            text.tokens,
            first_unit=first,
            last_unit=last,
            reanchor_tokens=every,
            match_classes=laid.token_classes,
        )
        prior = None if laid.prior is None else laid.prior[first : last + 1]
        return TokenSequence(stream.input_ids, stream.unit_ends, stream.match_classes, prior)


def repeats_every(reanchor_tokens: int | None, question_tokens: int) -> int | None:
    """After how many document tokens a question of so many tokens is repeated; None never."""
    return reanchor_tokens and max(reanchor_tokens, REANCHOR_QUESTIONS * question_tokens)
