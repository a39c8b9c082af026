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
from spscanner_rag.encoder.embedders import embed_checked
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
        self.query_prefix = preset.query_prefix
        if query_prefix is not None:
            self.query_prefix = query_prefix
        self.passage_prefix = preset.passage_prefix
        if passage_prefix is not None:
            self.passage_prefix = passage_prefix
        self.end_token = preset.end_token
        encoder = partial(
            encoder_of,
            device=device,
            pooling=preset.pooling,
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
        name = embedder if isinstance(embedder, str) else self._passages.name
        self.name = f"dense:{name}"

    @property
    def sentence_transformer(self) -> Any:  # noqa: ANN401 - an optional package's class
        """What embeds the units, if it is a sentence-transformers model.

        Else None.
        """
        return self._passages.model

    def passages_of(self, text: str, units: Sequence[Unit]) -> list[str]:
        """The text that is embedded for each unit."""
        passages = []
        for unit in units:
            content = unit.text_with_headings(text)
            passages.append(self.passage_prefix + content + self.end_token)
        return passages

    def logits(self, raw: Scores) -> Scores:
        """The logit of (1 + cosine) / 2.

        A scaled dot product is already a logit.
        """
        return raw if self.similarity == "dot" else super().logits(raw)

    def _vectors_of_units(self, text: str, units: Sequence[Unit]) -> Scores:
        return embed_checked(self._passages.passages, self.passages_of(text, units))

    def _vector_of_query(self, query: str, vectors: Scores) -> Scores:
        texts = [self.query_prefix + query + self.end_token]
        width = vectors.shape[1]
        vector: Scores = embed_checked(self._queries.queries, texts, width)[0]
        return vector

    def _similarities(self, question: Scores, vectors: Scores) -> Scores:
        products: Scores = vectors @ question
        if self.similarity == "dot":
            return np.asarray(products / np.sqrt(len(question)), np.float32)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(question)
        cosines = np.clip(products / np.maximum(lengths, 1e-12), -1, 1)
        return np.asarray(cosines, np.float32)
