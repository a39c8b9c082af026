"""Dense retrieval inside a document, with embedding models of any library."""

from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

import numpy as np

from spscanner_rag.baselines.baseline import Scores
from spscanner_rag.baselines.embedding import Embedding
from spscanner_rag.baselines.embedding_models import encoder_of, openai_embedder
from spscanner_rag.baselines.embedding_presets import Similarity, preset_of
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.encoder.embedders import Embed, Embedder, embed_checked
from spscanner_rag.text.units import Segmenter, Unit


class Dense(Embedding[Scores]):
    """Dense retrieval: compares the embeddings of the query and of each unit.

    With cosine similarity, q * u / (|q| |u|), users see the score (1 + cosine) / 2.
    With the dot product, q * u / sqrt(width) is the logit.

    Parameters
    ----------
    embedder
        See `encoder_of`. A name in `PRESETS` also has its own settings for queries and
        units.
    query_prefix, passage_prefix : str
        Text before every query and every unit, such as "query: " for E5; "" for none.
        Default: the preset's, else the prompt that a sentence-transformers model
        stores.
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

    Examples
    --------
    An embedder is the name of a model, or an object such as LangChain's embeddings.

    >>> class Letters:
    ...     def embed_query(self, text):
    ...         return [text.count("e"), text.count("i")]
    ...
    ...     def embed_documents(self, texts):
    ...         return [self.embed_query(text) for text in texts]
    >>> scorer = Dense(Letters())
    >>> text = "Ships leave at noon. The keeper signed it. Nobody waits."
    >>> units = scorer.units_of(text)
    >>> len(scorer.score_units("Who signed it?", text, units))
    3
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
        preset = preset_of(embedder)
        if preset.remote_code and not trust_remote_code:
            raise ValueError(
                f"{embedder!r} runs code from {preset.model}; pass"
                " trust_remote_code=True to allow that"
            )
        if query_prefix is None:
            query_prefix = preset.query_prefix or None
        if passage_prefix is None:
            passage_prefix = preset.passage_prefix or None
        self.end_token = preset.end_token
        encoder = partial(
            encoder_of,
            device=device,
            pooling=preset.pooling,
            projected=preset.projected,
            trust_remote_code=trust_remote_code,
        )
        if preset.model is None and embedder == "openai-3":
            self._passages = encoder(openai_embedder())
        else:
            self._passages = encoder(preset.model or embedder)
        stored: Any = getattr(self._passages.model, "similarity_fn_name", "cosine")
        self.similarity: Similarity = similarity or preset.similarity or stored
        if self.similarity not in get_args(Similarity):
            raise ValueError(
                f"{self._passages.name} compares by {self.similarity!r}; expected"
                " 'cosine' or 'dot': pass similarity="
            )
        self._queries = self._passages
        if preset.query_model:
            self._queries = encoder(preset.query_model)
        self._embed_query = _prefixed(
            self._queries.queries, self._queries, query_prefix
        )
        self._embed_units = _prefixed(
            self._passages.passages, self._passages, passage_prefix
        )
        self.query_prefix = _shown_prefix(self._queries, query_prefix, ("query",))
        self.passage_prefix = _shown_prefix(
            self._passages, passage_prefix, ("document", "passage", "corpus")
        )
        name = embedder if isinstance(embedder, str) else self._passages.name
        self.name = f"dense:{name}"

    @property
    def sentence_transformer(self) -> Any:  # noqa: ANN401 - an optional package's class
        """What embeds the units, if it is a sentence-transformers model.

        Else None.
        """
        return self._passages.model

    def passages_of(self, text: str, units: Sequence[Unit]) -> list[str]:
        """The text that is embedded for each unit, with its prefix."""
        contents = self._contents_of(text, units)
        return [self.passage_prefix + content for content in contents]

    def _contents_of(self, text: str, units: Sequence[Unit]) -> list[str]:
        return [unit.text_with_headings(text) + self.end_token for unit in units]

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + cosine) / 2.

        A scaled dot product is already a logit.
        """
        return raw if self.similarity == "dot" else super().logits(raw)

    def _vectors_of_units(self, text: str, units: Sequence[Unit]) -> Scores:
        return embed_checked(self._embed_units, self._contents_of(text, units))

    def _vector_of_query(self, query: str, vectors: Scores) -> Scores:
        width = vectors.shape[1]
        texts = [query + self.end_token]
        vector: Scores = embed_checked(self._embed_query, texts, width)[0]
        return vector

    def _similarities(self, question: Scores, vectors: Scores) -> Scores:
        products: Scores = vectors @ question
        if self.similarity == "dot":
            return np.asarray(products / np.sqrt(len(question)), np.float32)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(question)
        cosines = np.clip(products / np.maximum(lengths, 1e-12), -1, 1)
        return np.asarray(cosines, np.float32)


def _prefixed(embed: Embed, embedder: Embedder, prefix: str | None) -> Embed:
    """Embed with a prefix, or None for the prompt that a model stores.

    sentence-transformers gets the prefix as a prompt, which some models leave out of
    the mean over tokens.
    """
    if prefix is None:
        return embed
    if hasattr(embedder.model, "prompts"):
        encode: Any = embed  # a method of the library, which takes a prompt
        return partial(encode, prompt=prefix)
    return lambda texts: embed([prefix + text for text in texts])


def _shown_prefix(
    embedder: Embedder, prefix: str | None, prompt_names: Sequence[str]
) -> str:
    """Return the prefix that is used, given or stored in a model."""
    if prefix is not None:
        return prefix
    prompts: dict[str, str | None] = getattr(embedder.model, "prompts", {})
    for name in prompt_names:
        if name in prompts:
            return prompts[name] or ""
    return ""
