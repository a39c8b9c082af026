"""Embedding models of the user, as two functions from texts to vectors."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.surrogates import replace_surrogates

Embed = Callable[[list[str]], Any]
"""Embeds texts: one vector for each."""


class Embedder(NamedTuple):
    """Functions that embed queries and passages, one vector per text."""

    queries: Embed
    passages: Embed
    name: str
    model: Any = None  # if it is a sentence-transformers model


def embedder_of(embedder: object, *, batch_size: int = 32) -> Embedder:
    """Wrap a model of sentence-transformers, LlamaIndex or LangChain, or a function.

    A model of sentence-transformers puts the prompts that it stores before queries and
    passages.

    Parameters
    ----------
    embedder : object
        The model, or a function from a list of texts to their vectors.
    batch_size : int, default 32
        Texts that sentence-transformers embeds at once.

    Raises
    ------
    TypeError
        For anything else.

    Examples
    --------
    >>> from spscanner_rag.encoder.embedders import embedder_of
    >>> lengths = embedder_of(lambda texts: [[len(text)] for text in texts])
    >>> lengths.passages(["It rained.", "So."])
    [[10], [3]]
    """
    kind = type(embedder).__name__
    if callable(embed_documents := getattr(embedder, "embed_documents", None)):
        embed_query = embedder.embed_query  # type: ignore[attr-defined]
        return Embedder(partial(_one_by_one, embed_query), embed_documents, kind)
    if callable(embed_batch := getattr(embedder, "get_text_embedding_batch", None)):
        embed_query = embedder.get_query_embedding  # type: ignore[attr-defined]
        name = getattr(embedder, "model_name", kind)
        return Embedder(partial(_one_by_one, embed_query), embed_batch, name)
    if callable(encode := getattr(embedder, "encode", None)):
        # These use the prompts that the model stores for queries and for passages.
        encode_queries = getattr(embedder, "encode_query", encode)
        encode_passages = getattr(embedder, "encode_document", encode)
        options = {
            "batch_size": batch_size,
            "convert_to_numpy": True,
            "show_progress_bar": False,
        }
        queries = partial(encode_queries, **options)
        passages = partial(encode_passages, **options)
        return Embedder(queries, passages, _name_of(embedder), embedder)
    if callable(embedder):
        return Embedder(embedder, embedder, getattr(embedder, "__name__", kind))
    raise TypeError(
        f"embedder is {kind}; expected a model name, a sentence-transformers model, a "
        "LlamaIndex or LangChain embedding model, or a function from a list of texts "
        "to vectors"
    )


def _name_of(model: object) -> str:
    """The name of a sentence-transformers model."""
    card = getattr(model, "model_card_data", None)
    name = getattr(card, "base_model", None) or getattr(model, "name_or_path", None)
    return name if isinstance(name, str) else type(model).__name__


def _one_by_one(embed_query: Callable[[str], Any], texts: list[str]) -> list[Any]:
    return [embed_query(text) for text in texts]


def embed_checked(
    embed: Embed, texts: Sequence[str], width: int | None = None
) -> NDArray[np.float32]:
    """Return finite vectors of texts, in order: (texts, width).

    Raises
    ------
    ValueError
        If the embedder returns others.
    """
    # Sorted by length, so that batches need little padding.
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    returned = embed([replace_surrogates(texts[number]) for number in order])
    embeddings = [np.asarray(vector, np.float32) for vector in returned]
    if len(embeddings) != len(texts):
        raise ValueError(
            f"the embedder returned {len(embeddings)} vectors for {len(texts)} texts; "
            "expected one each"
        )
    if not embeddings:
        return np.empty((0, width or 0), np.float32)
    width = width or embeddings[0].size
    vectors = np.empty((len(texts), width), np.float32)
    for number, embedding in zip(order, embeddings, strict=True):
        vectors[number] = _checked(embedding, texts[number], width)
    return vectors


def _checked(
    embedding: NDArray[np.float32], text: str, width: int
) -> NDArray[np.float32]:
    """Return a vector of ``width`` finite numbers, or raise a ``ValueError``."""
    if embedding.shape != (width,):
        fault = f"a vector of shape {embedding.shape}"
    elif not np.isfinite(embedding).all():
        fault = "NaN or infinity"
    else:
        return embedding
    raise ValueError(
        f"the embedder returned {fault} for the text {text!r:.120}; expected "
        f"{width} finite numbers"
    )
