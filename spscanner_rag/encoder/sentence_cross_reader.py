"""Reads the likeliest sentences once more, in windows together with the question."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.encoder.bert_shape import BertShape
from spscanner_rag.encoder.cross_windows import (
    WINDOW_TOKENS,
    SentenceRange,
    SentenceTokens,
    windows_around,
)
from spscanner_rag.encoder.sentence_encoder import Step, ignore
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.encoding import encode

QUESTION_TOKENS: Final = 64
"""Maximum number of tokens read of a question, at its end, where people ask."""

LIKELY: Final = 64
"""Maximum number of sentences that get a window."""

REACH: Final = 1.5
"""How far below the best of its text a score may be; on 919 questions, reading more
changed no ranking."""

HOPELESS: Final = -4.0
"""Nothing with a score below this is read, as in texts of a collection that are
about something else."""

_CHARACTERS: Final = 16 * WINDOW_TOKENS  # that are tokenized of a sentence at most
_SPECIAL_TOKENS = 3


class SentenceCrossReader(ABC):
    """A cross-encoder that gives a logit to every sentence of a window.

    It reads ``[CLS] question [SEP] sentences [SEP]``, so that every word is read
    together with the question (Nogueira and Cho 2019); subclasses say what computes.
    A sentence's vector is the mean of its tokens' states, the question's vector that of
    the tokens before them; the logit is their cosine times a scale, plus a linear
    function of the sentence's vector.

    Parameters
    ----------
    shape : BertShape
        The sizes of its encoder.
    tokenizer : Tokenizer
        The encoder's tokenizer.
    """

    def __init__(self, shape: BertShape, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        longest = shape.max_position_embeddings - _SPECIAL_TOKENS
        self.question_tokens = min(QUESTION_TOKENS, longest // 3)
        self.window_tokens = min(WINDOW_TOKENS, longest - self.question_tokens)
        self._begin_id = tokenizer.token_to_id("[CLS]") or 0
        self._between_id = tokenizer.token_to_id("[SEP]") or 0

    @abstractmethod
    def window_logits(
        self, question: list[int], windows: Sequence[Sequence[list[int]]]
    ) -> Iterable[NDArray[np.float32]]:
        """Return the logits, (sentences,), of each window.

        Parameters
        ----------
        question : sequence of int
            The token ids of the question.
        windows : sequence of sequences of token ids
            The sentences of each window.
        """

    def logits(
        self,
        query: str,
        sentences: Sequence[str],
        scores: NDArray[np.float32],
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> NDArray[np.float32]:
        """Return the logits of a text's sentences, (sentences,).

        A sentence that is not read gets minus infinity. Windows are laid around the
        sentences with the best ``scores``, within `REACH` of the best and not below
        `HOPELESS`, until there are `WINDOWS`. A sentence in several windows takes its
        logit from the one in which it is farthest from the edge.

        Parameters
        ----------
        query : str
            The question.
        sentences : sequence of str
            All sentences of the text.
        scores : array (sentences,)
            Logits that the scanner's weights calibrate.
        before, after_step : callable, optional
            Called with the number of tokens that are read.
        """
        compute_in_forks()
        tokens = SentenceTokens(
            len(sentences),
            lambda number: self._ids(sentences[number]),
            self.window_tokens,
        )
        windows = windows_around(_likeliest(scores), tokens)
        windows.sort(key=tokens.count_in)
        if not windows:
            return np.full(len(sentences), -np.inf, np.float32)
        n_tokens = sum(map(tokens.count_in, windows))
        before(n_tokens)
        question = self.question_ids(query)
        window_tokens = []
        for window in windows:
            window_tokens.append([tokens[number] for number in range(*window)])
        logits_of_windows = self.window_logits(question, window_tokens)
        logits = _deepest(windows, logits_of_windows, len(sentences))
        after_step(n_tokens)
        return logits

    def question_ids(self, query: str) -> list[int]:
        """Return the token ids that are read of a question: those at its end."""
        ids: list[int] = encode(self.tokenizer, query.strip()).ids
        return ids[-self.question_tokens :]

    def _ids(self, sentence: str) -> list[int]:
        ids: list[int] = encode(self.tokenizer, sentence.strip()[:_CHARACTERS]).ids
        return ids

    def laid_out(
        self, questions: Sequence[list[int]], windows: Sequence[Sequence[list[int]]]
    ) -> "LaidOutWindows":
        """Lay out questions and the sentences of their windows to be read together."""
        rows: list[list[int]] = []
        second_begins: list[int] = []
        vector_of_token: list[int] = []
        n_vectors = len(windows)
        for number, question in enumerate(questions):
            row = [self._begin_id, *question, self._between_id]
            second_begins.append(len(row))
            vector_of_token += [number] * len(row)
            for ids in windows[number]:
                row += ids
                vector_of_token += [n_vectors] * len(ids)
                n_vectors += 1
            row.append(self._between_id)
            vector_of_token.append(-1)
            rows.append(row)
        return LaidOutWindows(rows, second_begins, vector_of_token, n_vectors)


class LaidOutWindows(NamedTuple):
    """Windows with their questions, as a model reads them."""

    rows: list[list[int]]  # the token ids of each
    second_begins: list[int]  # where the sentences begin in each
    # The vector that each token belongs to, -1 for none: the first vectors are the
    # questions', and those of all sentences follow.
    vector_of_token: list[int]
    n_vectors: int


def _likeliest(scores: NDArray[np.float32]) -> list[int]:
    """The numbers of the sentences to read, the best first."""
    order = np.argsort(-scores, kind="stable")[:LIKELY]
    lowest = max(scores.max(initial=HOPELESS) - REACH, HOPELESS)
    likeliest: list[int] = order[scores[order] >= lowest].tolist()
    return likeliest


def _deepest(
    windows: Sequence[SentenceRange],
    logits_of_windows: Iterable[NDArray[np.float32]],
    n_sentences: int,
) -> NDArray[np.float32]:
    """Each sentence's logit from the window in which it is farthest from the edge."""
    logits = np.full(n_sentences, -np.inf, np.float32)
    depths = np.full(n_sentences, -1)
    for window, window_logits in zip(windows, logits_of_windows, strict=True):
        numbers = range(*window)
        for number, logit in zip(numbers, window_logits.tolist(), strict=True):
            depth = window.depth(number, n_sentences)
            if depth > depths[number]:
                logits[number] = logit
                depths[number] = depth
    return logits
