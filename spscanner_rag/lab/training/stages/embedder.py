"""The embedder stage: contrastive fine-tuning of a sentence-transformers model, for `dense:FOLDER`."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spscanner_rag.baselines.base import no_progress_bars
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, locate
from spscanner_rag.lab.training.data.columns import PassageColumn, PassageDraw
from spscanner_rag.lab.training.loop import Objective
from spscanner_rag.lab.training.model_card import write_model_card
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.reranker import RerankerStage, ScoreTexts
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import readable

SCALE = 20.0  # of cosines: a temperature of 0.05


class EmbedderStage(RerankerStage):
    """Trains an embedding model on the questions and passages that a reranker is trained on."""

    def start(self) -> Checkpoint:
        """The embedding model to train."""
        base = self._files.base
        assert base is not None
        model = Dense(base, device=str(self._device)).sentence_transformer.float()
        before = getattr(model[0].auto_model.config, "spscanner", {}).get("training", {})
        tokenizer = model.tokenizer.backend_tokenizer
        return Checkpoint(model, ScannerSettings(training=before), tokenizer, base, locate(base), False)

    def objective(self, start: Checkpoint) -> Objective:
        """The passages that answer, among all of a step."""
        return EmbedderObjective(self.passages(), start.model, self._recipe)

    def scorer(self, checkpoint: Checkpoint) -> ScoreTexts:
        """The model's similarities of a question and texts."""
        model: Any = checkpoint.model

        def score(question: str, texts: Sequence[str]) -> NDArray[np.float32]:
            read = [readable(text) for text in (question, *texts)]
            vectors = model.encode(read, convert_to_tensor=True, show_progress_bar=False)
            similarities: NDArray[np.float32] = model.similarity(vectors[:1], vectors[1:])[0].cpu().numpy()
            return similarities

        return score

    def save(self, checkpoint: Checkpoint) -> None:
        """Write the model in sentence-transformers' layout, and the model card."""
        model: Any = checkpoint.model
        model[0].auto_model.config.spscanner = {"training": checkpoint.settings.training}
        with no_progress_bars():
            model.save(str(self._files.out), create_model_card=False)
        write_model_card(self._files.out, model[0].auto_model, checkpoint.settings)


class EmbedderObjective:
    """NT-Xent (Chen et al. 2020, "A Simple Framework for Contrastive Learning of Visual Representations").

    The cross-entropy of the right passage among all passages of a step, and of the right question among all its
    questions. Gradients are cached (Gao et al. 2021), so that a pass has `tokens_per_pass`, not a whole step.
    """

    def __init__(self, passages: PassageDraw, model: Any, recipe: Recipe) -> None:  # noqa: ANN401
        losses = needed("sentence_transformers.sentence_transformer.losses", "an embedder", "baselines")
        cosine = model.similarity_fn_name == "cosine"
        self._passages, self._recipe = passages, recipe
        self._loss = losses.CachedMultipleNegativesRankingLoss(
            model,
            scale=SCALE if cosine else 1.0,
            similarity_fct=model.similarity,
            mini_batch_size=max(1, recipe.tokens_per_pass // (model.max_seq_length or 512)),
            directions=("query_to_doc", "doc_to_query"),
            partition_mode="per_direction",
        )

    def example(self, number: int, length: int) -> PassageColumn:
        """Column ``number``, of texts that the model cuts at its own length."""
        return self._passages.column(number)

    def tokens(self, example: PassageColumn) -> int:
        """The number of tokens of question and passages."""
        read = self._features((example.question, *example.passages))
        return int(read["attention_mask"].sum())

    def losses(self, model: Any, examples: Sequence[PassageColumn]) -> Iterator[Tensor]:  # noqa: ANN401
        """The loss of a step."""
        # of the same question, or the same passage, one: it would be its own negative
        by_question = {column.question: column for column in examples}
        columns = {column.passages[0]: column for column in by_question.values()}.values()
        passages = zip(*(column.passages for column in columns), strict=False)  # as many as the shortest has
        texts = [[column.question for column in columns], *passages]
        # entered until the gradients are computed: the passes are repeated for them
        with torch.autocast(model.device.type, torch.bfloat16, enabled=self._recipe.dtype == "bfloat16"):
            yield self._loss([self._features(column) for column in texts], None)

    def _features(self, texts: Sequence[str]) -> dict[str, Tensor]:
        model = self._loss.model
        read = model.preprocess([readable(text) for text in texts])
        return {
            name: value.to(model.device) if isinstance(value, Tensor) else value
            for name, value in read.items()
        }
