"""Late interaction inside a document: every token of the query looks for its best match in a unit (ColBERT)."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, check_whole, checked_requests, log_odds
from spscanner_rag.baselines.multi_vector.token_vectors import token_encoder_of
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.units import Segmenter, Unit, readable

_KEPT_QUERIES = 64

Scores = NDArray[np.float32]


class LateInteraction(Baseline):
    """Late interaction (ColBERT: Khattab and Zaharia, 2020): the score is sum over q of max over u of cos(q, u).

    q runs over the token vectors of the query, u over those of the unit. Users see the sigmoid of the logit of
    (1 + mean over q of the maxima) / 2.

    ColBERT checkpoints, Stanford's or PyLate's, are read by sentence-transformers with their projection, prefixes,
    query expansion and masked punctuation; PyLate need not be installed. Of a sentence-transformers model for
    single vectors, such as all-MiniLM-L6-v2, the vectors of all tokens are compared as they come from the last
    layer: nothing was trained for that.

    The vectors of units are made batch by batch, compared with all questions on the text, and dropped, so memory
    does not grow with the document. A unit longer than the model reads is read in pieces, whose tokens all count.

    Parameters
    ----------
    model : str, Path or object, default "minilm"
        A Hub id such as "colbert-ir/colbertv2.0" or a local folder; or a loaded ``MultiVectorEncoder`` or
        ``SentenceTransformer`` of sentence-transformers, or ``ColBERT`` of PyLate.
    unit : str or Segmenter, default "sentence"
        See `Baseline`.
    batch_size : int, default 32
        Units per forward pass.
    device : str, optional
        For a model given by name. Default: the choice of sentence-transformers.
    trust_remote_code : bool, default False
        Let a model from the Hub run its own code.

    Raises
    ------
    ImportError
        If sentence-transformers is not installed; the message says how to install it.
    ValueError
        For a ColBERT checkpoint without a projection, or a number out of range.
    TypeError
        For an object that is none of these models.
    """

    def __init__(
        self,
        model: object = "minilm",
        unit: UnitKind | Segmenter = "sentence",
        *,
        batch_size: int = 32,
        device: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__(unit)
        check_whole(batch_size=batch_size)
        self.batch_size = batch_size
        self._encoder = token_encoder_of(
            model, batch_size=batch_size, device=device, trust_remote_code=trust_remote_code
        )
        self.name = f"lateinteraction:{self._encoder.name}"
        self._queries: OrderedDict[str, Scores] = OrderedDict()

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """Sums over the tokens of the query of their highest cosine: (units,)."""
        return self._sums([query], text, units, never)[0]

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """One logit for each unit: (units,)."""
        return self.score_units_many([(query, text, units)])[0]

    def score_units_many(self, requests: Sequence[Request], *, cancelled: Cancelled = never) -> list[Scores]:
        """Logits of the units of each text: (units,) each. A text is read once for all questions that follow.

        Raises
        ------
        ValueError
            If a query is empty; nothing has been read then.
        ScanCancelled
            If ``cancelled`` returned True.
        """
        requests = checked_requests(requests)
        scored: list[Scores] = []
        while len(scored) < len(requests):
            _, text, units = requests[len(scored)]
            queries = []
            for query, own, cut in requests[len(scored) :]:
                if own != text or cut != units:
                    break
                queries.append(query)
            for query, sums in zip(queries, self._sums(queries, text, units, cancelled), strict=True):
                scored.append(self.logits(sums / np.float32(len(self._query_vectors(query)))))
        return scored

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + cosine) / 2, for the mean over the query's tokens."""
        return log_odds((1 + np.clip(raw, -1, 1)) / 2)

    def _sums(
        self, queries: list[str], text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> list[Scores]:
        """The raw scores of each query, after one reading of the text: (units,) each."""
        asked = [self._query_vectors(query) for query in queries]
        best = [np.full((len(query), len(units)), -1, np.float32) for query in asked]
        for numbers, vectors in self._read(text, units, cancelled):
            filled = [place for place, own in enumerate(vectors) if len(own)]  # a unit may be all punctuation
            if not filled:
                continue
            starts = np.cumsum([0, *(len(vectors[place]) for place in filled[:-1])])
            tokens = _normalized(np.concatenate([vectors[place] for place in filled]))
            owners = np.array(numbers)[filled]
            for query, maxima in zip(asked, best, strict=True):
                found = np.maximum.reduceat(query @ tokens.T, starts, axis=1)  # (query tokens, pieces)
                np.maximum.at(maxima.T, owners, found.T)  # a long unit has several pieces
        return [maxima.sum(axis=0) for maxima in best]

    def _read(
        self, text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> Iterator[tuple[list[int], list[Scores]]]:
        """Batches of pieces: the number of the unit that each is of, and its token vectors."""
        pieces = ((n, piece) for n, unit in enumerate(units) for piece in self._pieces(unit.own_text(text)))
        batch: list[tuple[int, str]] = []
        for numbered in pieces:
            batch.append(numbered)
            if len(batch) == 8 * self.batch_size:  # the model sorts them by length, to pad little
                yield self._encoded(batch, cancelled)
                batch = []
        if batch:
            yield self._encoded(batch, cancelled)

    def _encoded(self, batch: list[tuple[int, str]], cancelled: Cancelled) -> tuple[list[int], list[Scores]]:
        stop_if(cancelled)
        with self._lock:  # a tokenizer with truncation is not thread-safe
            vectors = self._encoder.documents([piece for _, piece in batch])
        return [number for number, _ in batch], [np.asarray(own, np.float32) for own in vectors]

    def _pieces(self, text: str) -> Iterator[str]:
        """The text, halved at white space until the model reads each piece whole."""
        text, limit = readable(text), self._encoder.limit
        if limit is None or len(text) < limit // 4 or self._encoder.n_tokens(text) <= limit - 2:
            yield text
            return
        middle = len(text) // 2
        cut = text.rfind(" ", 1, middle + 1)
        cut = middle if cut < 0 else cut
        if cut < 1:
            yield text
            return
        yield from self._pieces(text[:cut])
        yield from self._pieces(text[cut:])

    def _query_vectors(self, query: str) -> Scores:
        with self._lock:
            if query not in self._queries:
                (vectors,) = self._encoder.queries([readable(query)])
                self._queries[query] = _normalized(np.asarray(vectors, np.float32))
            self._queries.move_to_end(query)
            while len(self._queries) > _KEPT_QUERIES:
                self._queries.popitem(last=False)
            return self._queries[query]


def _normalized(vectors: Scores) -> Scores:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
