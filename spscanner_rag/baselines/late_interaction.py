"""Late interaction: token vectors of the query with those of every unit."""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from spscanner_rag.baselines.baseline import Baseline, Scores, log_odds
from spscanner_rag.baselines.token_encoders import load_token_encoder
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter, Unit

_READ_AT_ONCE = 256  # pieces of units whose token vectors are held at a time
_ENCODING: Any = {
    "batch_size": 32,
    "convert_to_numpy": True,
    "show_progress_bar": False,
}


class LateInteraction(Baseline):
    """Late interaction (ColBERT: Khattab and Zaharia, 2020).

    The score is s = mean over q of max over u of cos(q, u). q runs over the token
    vectors of the query, u over those of the unit. The mean gives the same ranking as
    the paper's sum. Users see (1 + s) / 2.

    sentence-transformers reads ColBERT checkpoints (Stanford's or PyLate's) with their
    projection, prefixes, query expansion and masked punctuation; PyLate need not be
    installed. For a single-vector model such as all-MiniLM-L6-v2, the token vectors of
    the last layer are compared, although it was not trained for that.

    Vectors of units are computed batch by batch, compared with all questions about the
    text, and dropped, so memory does not grow with the document. A unit longer than the
    model's limit is read in pieces, and all tokens count.

    Parameters
    ----------
    model : str or Path, default "minilm"
        A Hub id such as "colbert-ir/colbertv2.0", or a local folder.
    unit, device, trust_remote_code
        See `Dense`.
    """

    def __init__(
        self,
        model: str | Path = "minilm",
        unit: UnitKind | Segmenter = "sentence",
        *,
        device: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__(unit)
        self._encoder = load_token_encoder(str(model), device, trust_remote_code)
        # A ColBERT checkpoint has its own limit for documents.
        document_length = getattr(self._encoder[0], "document_length", None)
        self._limit: int | None = document_length or self._encoder.max_seq_length
        self.name = f"lateinteraction:{model}"

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """Means of the highest cosines.

        Consecutive questions about the same text read it once.
        """
        for (text, units), requests_on_text in groupby(requests, key=_text_and_units):
            queries = [query for query, _, _ in requests_on_text]
            yield from self._means(queries, text, units, cancelled)

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + mean) / 2."""
        return log_odds((1 + np.clip(raw, -1, 1)) / 2)

    def _means(
        self, queries: list[str], text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> list[Scores]:
        """For each query, the mean of its tokens' highest cosines: (units,)."""
        query_tokens = self._query_vectors(queries)
        maxima_by_query = []
        for tokens in query_tokens:
            shape = (len(tokens), len(units))
            maxima_by_query.append(np.full(shape, -1, np.float32))
        pieces = self._pieces_of_units(text, units)
        # The model sorts a batch by length, to pad less.
        while batch := list(islice(pieces, _READ_AT_ONCE)):
            stop_if(cancelled)
            numbers, vectors = self._piece_vectors(batch)
            if not vectors:
                continue
            lengths = [len(vectors_of_piece) for vectors_of_piece in vectors]
            starts = np.cumsum([0, *lengths[:-1]])
            tokens = _normalized(np.concatenate(vectors))
            for query, maxima in zip(query_tokens, maxima_by_query, strict=True):
                # (query tokens, pieces); a long unit has several pieces
                highest = np.maximum.reduceat(query @ tokens.T, starts, axis=1)
                np.maximum.at(maxima.T, numbers, highest.T)
        return [maxima.mean(axis=0) for maxima in maxima_by_query]

    def _query_vectors(self, queries: Sequence[str]) -> list[Scores]:
        """The vectors of each query's tokens, (query tokens, width)."""
        query_tokens = []
        for query in queries:
            text = replace_surrogates(query)
            with self._lock:  # a tokenizer with truncation is not thread-safe
                vectors = self._encoder.encode_query([text], **_ENCODING)[0]
            query_tokens.append(_normalized(vectors))
        return query_tokens

    def _pieces_of_units(
        self, text: str, units: Sequence[Unit]
    ) -> Iterator[tuple[int, str]]:
        """Yield the pieces that the model reads, each with the number of its unit."""
        for number, unit in enumerate(units):
            for piece in self._pieces(unit.text_with_headings(text)):
                yield number, piece

    def _piece_vectors(
        self, batch: Sequence[tuple[int, str]]
    ) -> tuple[list[int], list[Scores]]:
        """The units' numbers and the token vectors of the pieces that have any."""
        with self._lock:
            all_vectors = self._encoder.encode_document(
                [piece for _, piece in batch], **_ENCODING
            )
        numbers = []
        vectors = []
        for (number, _), vectors_of_piece in zip(batch, all_vectors, strict=True):
            if len(vectors_of_piece):  # a unit may be all punctuation
                numbers.append(number)
                vectors.append(vectors_of_piece)
        return numbers, vectors

    def n_tokens(self, text: str) -> int:
        """Count the tokens of a text without truncating it."""
        encoding = self._encoder.tokenizer(text, truncation=False, verbose=False)
        return len(encoding["input_ids"])

    def _pieces(self, text: str) -> Iterator[str]:
        """The text, halved at white space until each piece fits the model."""
        middle = len(text) // 2
        text = replace_surrogates(text)
        cut = text.rfind(" ", 1, middle + 1)
        if cut < 0:
            cut = middle
        if cut < 1 or self._fits(text):
            yield text
            return
        yield from self._pieces(text[:cut])
        yield from self._pieces(text[cut:])

    def _fits(self, text: str) -> bool:
        """Whether the model reads all tokens of a text.

        Two more mark its ends.
        """
        if self._limit is None or len(text) < self._limit // 4:
            return True
        return self.n_tokens(text) <= self._limit - 2


def _text_and_units(request: Request) -> tuple[str, list[Unit]]:
    return request[1], list(request[2])


def _normalized(vectors: Any) -> Scores:  # noqa: ANN401 - the library's array
    vectors = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
