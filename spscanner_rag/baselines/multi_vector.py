"""Late interaction (ColBERT): a vector for each token of a unit."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from spscanner_rag.baselines.base import Baseline, Scores, load, log_odds
from spscanner_rag.baselines.dense import installed
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import Segmenter, Unit, readable

_READ_AT_ONCE = 256
_ENCODING: Any = {"batch_size": 32, "convert_to_numpy": True, "show_progress_bar": False}
_LATE_TYPES = ("MultiVectorEncoder", "ColBERT")  # the classes of sentence-transformers and of PyLate


class LateInteraction(Baseline):
    """Late interaction (ColBERT: Khattab and Zaharia, 2020): s = mean over q of max over u of cos(q, u).

    q runs over the token vectors of the query, u over those of the unit. The mean ranks as the paper's sum does.
    Users see (1 + s) / 2.

    ColBERT checkpoints, Stanford's or PyLate's, are read by sentence-transformers with their projection, prefixes,
    query expansion and masked punctuation; PyLate need not be installed. Of a sentence-transformers model for
    single vectors, such as all-MiniLM-L6-v2, the vectors of all tokens are compared as they come from the last
    layer: nothing was trained for that.

    The vectors of units are made batch by batch, compared with all questions on the text, and dropped, so memory
    does not grow with the document. A unit longer than the model reads is read in pieces, whose tokens all count.

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
        self._encoder = _load(str(model), device, trust_remote_code)
        self._limit: int | None = getattr(self._encoder[0], "document_length", None)
        self._limit = self._limit or self._encoder.max_seq_length
        self.name = f"lateinteraction:{model}"

    def raw_scores_many(self, requests: Sequence[Request], cancelled: Cancelled = never) -> Iterator[Scores]:
        """Means of the highest cosines; a text is read once for all questions on it that follow each other."""
        for (text, units), asked in groupby(requests, key=lambda request: (request[1], list(request[2]))):
            yield from self._means([query for query, _, _ in asked], text, units, cancelled)

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + mean) / 2."""
        return log_odds((1 + np.clip(raw, -1, 1)) / 2)

    def _means(
        self, queries: list[str], text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> list[Scores]:
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
        return [maxima.mean(axis=0) for maxima in best]

    def _read(
        self, text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> Iterator[tuple[list[int], list[Scores]]]:
        """Batches of pieces: the number of the unit that each is of, and its token vectors."""
        pieces = ((n, piece) for n, unit in enumerate(units) for piece in self._pieces(unit.own_text(text)))
        while batch := list(islice(pieces, _READ_AT_ONCE)):  # the model sorts them by length, to pad little
            stop_if(cancelled)
            with self._lock:  # a tokenizer with truncation is not thread-safe
                vectors = self._encoder.encode_document([piece for _, piece in batch], **_ENCODING)
            yield [number for number, _ in batch], [np.asarray(own, np.float32) for own in vectors]

    def n_tokens(self, text: str) -> int:
        """Tokens of a text that is not cut."""
        return len(self._encoder.tokenizer(text, truncation=False, verbose=False)["input_ids"])

    def _pieces(self, text: str) -> Iterator[str]:
        """The text, halved at white space until the model reads each piece whole."""
        text, limit = readable(text), self._limit
        if limit is None or len(text) < limit // 4 or self.n_tokens(text) <= limit - 2:
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
            (vectors,) = self._encoder.encode_query([readable(query)], **_ENCODING)
        return _normalized(np.asarray(vectors, np.float32))


def _normalized(vectors: Scores) -> Scores:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _load(name: str, device: str | None, trust_remote_code: bool) -> Any:  # noqa: ANN401 - an optional package's class
    """A ``MultiVectorEncoder`` of sentence-transformers; from a model for single vectors, one of its tokens."""
    library = needed("sentence_transformers", f"late interaction with {name!r}", "baselines")
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    name = installed(name)
    options = {"device": device, "trust_remote_code": trust_remote_code}

    def loaded(path: str) -> object:
        stated = _stated(path, "config_sentence_transformers.json").get("model_type")
        if stated not in _LATE_TYPES and not _is_stanford(path):
            plain = library.SentenceTransformer(path, **options)
            modules = [plain[0], MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
            return library.MultiVectorEncoder(modules=modules, device=str(plain.device))
        try:
            model = library.MultiVectorEncoder(path, **options)
        except KeyError as error:  # Stanford's layout keeps the projection beside the encoder
            if "linear.weight" not in str(error):
                raise
            model = None
        # sentence-transformers makes a random projection if there is none; a model for late interaction that it
        # saved itself is as it was trained, with one or without
        own = stated == "MultiVectorEncoder" or _is_stanford(path)
        if model is None or not (own or "Dense" in str(_stated(path, "modules.json"))):
            raise ValueError(
                f"{name} is a ColBERT checkpoint without a projection of its token vectors; expected "
                "linear.weight or a module Dense in it: take the whole checkpoint, or a sentence-transformers "
                "model, whose token vectors need none"
            )
        return model

    return load(loaded, name, trusted=trust_remote_code)


def _is_stanford(path: str) -> bool:
    architectures = _stated(path, "config.json").get("architectures") or []
    return any(name == "HF_ColBERT" or name.endswith("ForRetrieval") for name in architectures)


def _stated(path: str, file: str) -> dict[str, Any]:
    """The content of a JSON file of a model; empty if there is no such file."""
    from sentence_transformers.util import load_file_path

    found = load_file_path(path, file)
    content = json.loads(Path(found).read_text(encoding="utf-8")) if found else {}
    return content if isinstance(content, dict) else {"": content}
