"""Vectors of sentences in their context: what every encoder of windows does."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.encoder.bert_shape import BertShape
from spscanner_rag.encoder.sentence_encoder import Step, ignore
from spscanner_rag.encoder.sentence_vectors import SentenceVectors, unit_vectors
from spscanner_rag.encoder.token_windows import WINDOW_TOKENS, TokenizedSentences
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.text.encoding import encode

TOKENS_AT_ONCE_ON_CPU = 1024  # others wait for the end of a pass; 512 are 10 % slower
LEAST_POSITIONS = 16
SPECIAL_TOKENS = (("[CLS]", "[SEP]"), ("<s>", "</s>"))
"""What stands before and after a window, in vocabularies of BERT and of XLM-R."""

_CHARACTERS_AT_ONCE = 16_384  # of a sentence that are tokenized together


class ShapedModel(Protocol):
    """A BERT-like encoder, whatever computes it."""

    @property
    def shape(self) -> BertShape:
        """The sizes of the encoder."""
        ...


Model = TypeVar("Model", bound=ShapedModel)


class WindowEncoder(ABC, Generic[Model]):
    """Reads windows of a text once, and pools the states of each sentence's tokens.

    A sentence's vector is the mean of its tokens' states over its windows; subclasses
    say what computes the states. This is late chunking (Günther et al. 2024) with short
    windows. The vector of a question, read after the text ``prefix``, is the mean of
    the states of its tokens and the two special ones, or with ``first_token`` the state
    of the first.

    Some models are trained with a word before each passage too; it then stands before
    each window, and counts for no sentence. A model that was not trained to tell the
    sentences of a window apart reads each ``alone`` as well.

    Parameters
    ----------
    model : Model
        The encoder.
    tokenizer : Tokenizer
        The model's tokenizer.
    digest : str
        The digest of the model's files.
    prefix : str, optional
        What stands before a question.
    passage_prefix : str, optional
        What stands before the sentences of a window.
    alone : float, default 0
        The weight, up to 1, of the vector of a sentence that is read alone, beside that
        in its windows.
    first_token : bool, default False
        Whether a question's vector is the state of its first token.

    Raises
    ------
    ValueError
        For a model that `check_fit` refuses.
    """

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        digest: str,
        *,
        prefix: str = "",
        passage_prefix: str = "",
        alone: float = 0.0,
        first_token: bool = False,
    ) -> None:
        self.model = model
        self.shape = model.shape
        self.tokenizer = tokenizer
        self.digest = digest
        self.prefix = prefix
        self.alone = alone
        self.first_token = first_token
        check_fit(tokenizer, model.shape)
        self._begin_id, self._end_id = _special_ids(tokenizer) or (0, 0)
        self._longest = model.shape.max_position_embeddings - 2
        self._before_passages = self.ids(passage_prefix)

    @abstractmethod
    def question_state(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return the pooled state of a window with a question: (width,)."""

    @abstractmethod
    def means_in_windows(
        self,
        sentences: TokenizedSentences,
        windows: Sequence[tuple[int, int]],
        after_step: Step,
    ) -> NDArray[np.float32]:
        """Return the mean state of each sentence's tokens in windows.

        Parameters
        ----------
        sentences : TokenizedSentences
            The tokens of the sentences.
        windows : sequence of (start, stop)
            Ranges of tokens.
        after_step : callable
            Called with the number of tokens read in each step.

        Returns
        -------
        array (sentences, width)
        """

    def question(self, query: str) -> NDArray[np.float32]:
        """Return the vector of a question, of length 1: (width,).

        Tokens beyond the model's maximum are left out.
        """
        compute_in_forks()
        vector = self.question_state(self.enclosed(self.question_ids(query)))
        length = max(float(np.linalg.norm(vector)), 1e-12)
        return np.asarray(vector / length, np.float32)

    def question_ids(self, query: str) -> list[int]:
        """Return the token ids of a question, without special tokens."""
        ids: list[int] = encode(self.tokenizer, self.prefix + query.strip()).ids
        return ids[: self._longest]

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """Return the vectors of a text's sentences, whatever other texts there are."""
        tokens = TokenizedSentences.of([self.ids(sentence) for sentence in sentences])
        return self.vectors_of_tokens(tokens, before, after_step)

    def vectors_of_tokens(
        self,
        sentences: TokenizedSentences,
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> SentenceVectors:
        """Return the `vectors` of sentences that are already tokenized."""
        longest = self._longest - len(self._before_passages)
        windows = sentences.windows(min(WINDOW_TOKENS, longest))
        windows_of_one: list[tuple[int, int]] = []
        if self.alone:
            windows_of_one = sentences.windows_of_one(longest)
        before(sum(stop - start for start, stop in windows + windows_of_one))
        compute_in_forks()
        means = self.means_in_windows(sentences, windows, after_step)
        if self.alone:
            alone = self.means_in_windows(sentences, windows_of_one, after_step)
            means = (1 - self.alone) * unit_vectors(means) + self.alone * unit_vectors(
                alone
            )
        return SentenceVectors.of(means)

    def batch_of(
        self, sentences: TokenizedSentences, windows: Sequence[tuple[int, int]]
    ) -> tuple[list[list[int]], NDArray[np.bool_], NDArray[np.int64]]:
        """Lay out windows to be read in one pass.

        Returns
        -------
        tuple
            Their token ids with the special ones; which tokens are those of sentences,
            (tokens,); and the sentence of each of these.
        """
        rows = []
        for start, stop in windows:
            ids = sentences.ids[start:stop].tolist()
            rows.append(self.enclosed([*self._before_passages, *ids]))
        stops = np.cumsum([len(row) for row in rows])
        inside = np.ones(int(stops[-1]), bool)
        for place in range(1 + len(self._before_passages)):
            inside[[place, *(stops[:-1] + place)]] = False
        inside[stops - 1] = False
        numbers = [sentences.sentence_of(*window) for window in windows]
        return rows, inside, np.concatenate(numbers)

    def ids(self, sentence: str) -> list[int]:
        """Return the token ids of a sentence, without special tokens."""
        ids: list[int] = []
        for start in range(0, len(sentence), _CHARACTERS_AT_ONCE):
            part = sentence[start : start + _CHARACTERS_AT_ONCE]
            ids += encode(self.tokenizer, part).ids
        return ids

    def enclosed(self, ids: Sequence[int]) -> list[int]:
        """Return token ids between the special tokens."""
        return [self._begin_id, *ids, self._end_id]


def check_fit(tokenizer: Tokenizer, shape: BertShape) -> None:
    """Refuse a tokenizer whose tokens the model does not know, and a tiny window.

    Raises
    ------
    ValueError
        For a tokenizer without special tokens (`SPECIAL_TOKENS`) or with token ids
        beyond the model's vocabulary, and for a model that reads less than
        `LEAST_POSITIONS`.
    """
    ids = tokenizer.get_vocab(with_added_tokens=True)
    highest = max(ids.values(), default=-1)
    if _special_ids(tokenizer) is None or highest >= shape.vocab_size:
        begin_id = tokenizer.token_to_id("[CLS]")
        end_id = tokenizer.token_to_id("[SEP]")
        raise ValueError(
            f"the tokenizer has token ids up to {highest:,}, [CLS] as {begin_id} and"
            f" [SEP] as {end_id}; expected both (or <s> and </s>), and ids below"
            f" {shape.vocab_size:,}, the model's vocab_size: take the tokenizer of the"
            " model"
        )
    if shape.max_position_embeddings < LEAST_POSITIONS:
        raise ValueError(
            f"max_position_embeddings is {shape.max_position_embeddings}; expected at"
            f" least {LEAST_POSITIONS}: take a model that reads whole sentences"
        )


def _special_ids(tokenizer: Tokenizer) -> tuple[int, int] | None:
    """The ids of the first pair of `SPECIAL_TOKENS` that a tokenizer has."""
    for begin, end in SPECIAL_TOKENS:
        begin_id = tokenizer.token_to_id(begin)
        end_id = tokenizer.token_to_id(end)
        if begin_id is not None and end_id is not None:
            return begin_id, end_id
    return None


def in_batches(
    windows: Sequence[tuple[int, int]], most_tokens: int
) -> list[list[tuple[int, int]]]:
    """Windows in groups of at most so many tokens."""
    batches: list[list[tuple[int, int]]] = []
    room = 0
    for start, stop in windows:
        if stop - start > room:
            batches.append([])
            room = most_tokens
        batches[-1].append((start, stop))
        room -= stop - start
    return batches
