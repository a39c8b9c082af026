"""The stage that trains an embedding model."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.passages import (
    PassageColumn,
    PassageDraw,
    word_scores,
)
from spscanner_lab.training.loop import Objective
from spscanner_lab.training.recipe import Recipe
from spscanner_lab.training.stages.transformer_reranker import TransformerStage
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.checkpoint import Checkpoint
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter


class EmbedderObjective(PassageDraw):
    """NT-Xent between questions and passages, or the divergence from a teacher.

    NT-Xent is as in Chen et al. 2020, "A Simple Framework for Contrastive Learning":
    the cross-entropy of the right passage among all passages of a step, and of the
    right question among all its questions. The library caches gradients:
    ``tokens_per_pass`` bounds the memory. With ``embedder_loss = "kl"`` the loss is the
    Kullback-Leibler divergence of a question's softmax over its own passages from that
    of their `word_scores`. Cosines are divided by 0.05.
    """

    splits = False

    def __init__(
        self,
        documents: DocumentStore,
        recipe: Recipe,
        segmenter: Segmenter,
        model: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(documents, recipe, segmenter)
        losses = import_extra(
            "sentence_transformers.sentence_transformer.losses",
            "an embedder",
            "baselines",
        )
        self._to_device = import_extra(
            "sentence_transformers.util", "an embedder", "baselines"
        ).batch_to_device
        scale = 20.0 if model.similarity_fn_name == "cosine" else 1.0
        self._scale = scale
        text_tokens = model.max_seq_length or 512
        self._loss = losses.CachedMultipleNegativesRankingLoss(
            model,
            scale=scale,
            similarity_fct=model.similarity,
            mini_batch_size=max(1, recipe.tokens_per_pass // text_tokens),
            directions=("query_to_doc", "doc_to_query"),
            partition_mode="per_direction",
        )

    def example(self, number: int, length: int) -> PassageColumn:
        """Column ``number``, whose texts the model cuts at its own maximum length."""
        return self.column(number)

    def tokens(self, example: PassageColumn) -> int:
        """The number of tokens of the question and its passages."""
        features = self._features((example.question, *example.passages))
        return int(features["attention_mask"].sum())

    def losses(
        self,
        model: nn.Module,
        examples: Sequence[PassageColumn],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The loss of a step.

        Columns that repeat a question or a right passage are dropped.
        """
        by_question = {column.question: column for column in examples}
        by_passage = {column.passages[0]: column for column in by_question.values()}
        questions = []
        passages = []
        for column in by_passage.values():
            questions.append(column.question)
            passages.append(column.passages)
        # as many as the shortest has
        texts = [questions, *zip(*passages, strict=False)]
        kind = self._loss.model.device.type
        loss = self._loss
        if self.recipe.embedder_loss == "kl":
            teacher = [word_scores(column) for column in by_passage.values()]
            loss = partial(self._divergence, teacher)
        # autocast stays on until the gradients are computed, since that repeats the
        # passes
        with torch.autocast(
            kind, torch.bfloat16, enabled=self.recipe.dtype == "bfloat16"
        ):
            yield loss(list(map(self._features, texts)), None)

    def _divergence(
        self,
        teacher: Sequence[Sequence[float]],
        features: Sequence[dict[str, Any]],
        labels: None,
    ) -> Tensor:
        """The mean divergence of a step: a scalar.

        ``features`` are those of the questions, of their right passages, and so on, as
        the library's losses take them.
        """
        model = self._loss.model
        questions, *passages = (
            model(inputs)["sentence_embedding"] for inputs in features
        )
        # (questions, passages, width)
        stacked = torch.stack(passages, 1)
        rows = []
        for question, vectors in zip(questions, stacked, strict=True):
            rows.append(model.similarity(question[None], vectors)[0])
        logits = torch.stack(rows).float() * self._scale
        targets = torch.tensor(
            [scores[: len(passages)] for scores in teacher], device=logits.device
        )
        return F.kl_div(
            logits.log_softmax(-1),
            targets.log_softmax(-1),
            reduction="batchmean",
            log_target=True,
        )

    def score(
        self,
        model: Any,  # noqa: ANN401
        question: str,
        texts: Sequence[str],
    ) -> NDArray[np.float32]:
        """The similarities of texts by the model's own function: (texts,)."""
        inputs = list(map(replace_surrogates, (question, *texts)))
        vectors = model.encode(inputs, convert_to_tensor=True, show_progress_bar=False)
        similarity = model.similarity(vectors[:1], vectors[1:])[0]
        similarities: NDArray[np.float32] = similarity.cpu().numpy()
        return similarities

    def _features(self, texts: Sequence[str]) -> dict[str, Any]:
        model = self._loss.model
        inputs = model.preprocess(list(map(replace_surrogates, texts)))
        features: dict[str, Any] = self._to_device(inputs, model.device)
        return features


class EmbedderStage(TransformerStage):
    """Trains a sentence-transformers model for `dense:FOLDER`.

    It learns from the passages of a reranker.
    """

    def _loaded(self, base: str) -> Any:  # noqa: ANN401 - sentence-transformers' own
        model = Dense(base, device=str(self._device)).sentence_transformer
        self._tokenizer = model.tokenizer
        return model

    def objective(self, start: Checkpoint) -> Objective:
        """The objective: find the passage with the answer among all of a step."""
        return self._of(EmbedderObjective, start.model)
