"""The stage that trains a Mamba reranker."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import torch
from tokenizers import Tokenizer

from spscanner_lab.evidence.questions import QuestionOnDocument
from spscanner_lab.training.data.passages import PassageDraw
from spscanner_lab.training.loop import Objective
from spscanner_lab.training.stages.evidence import EvidenceStage
from spscanner_lab.training.stages.pair_objectives import RerankerObjective
from spscanner_lab.training.stages.passage_ranking import ranking
from spscanner_rag.baselines.pair_reader import END_TOKENS, PairReader
from spscanner_rag.baselines.unit_kinds import UnitKind, segmenter_of
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, new_model

Passages = TypeVar("Passages", bound=PassageDraw)


class RerankerStage(EvidenceStage):
    """Trains a reranker, without a lexical channel, on the questions of ``--data``."""

    measured = "validation_ranking"
    title = "ranking"
    mark = ""
    names = ("mrr@10", "recall@1", "recall@10")
    choice = "mrr@10"
    passages: Any  # the objective

    def start(self) -> Checkpoint:
        """The reranker to train."""
        return as_reranker(super().start(), self._recipe.seed)

    def objective(self, start: Checkpoint) -> Objective:
        """The objective: find the passage with the answer among hard negatives."""
        return self._of(RerankerObjective, PairReader(start.tokenizer))

    def _of(
        self,
        kind: Callable[..., Passages],
        reader: Any,  # noqa: ANN401
    ) -> Passages:
        segmenter = segmenter_of(cast(UnitKind, self._recipe.rerank_unit))
        objective = kind(self._documents, self._recipe, segmenter, reader)
        self.drawn = objective
        self.passages = objective
        return objective

    def measure(
        self, checkpoint: Checkpoint, questions: Sequence[QuestionOnDocument]
    ) -> list[dict[str, float]]:
        """MRR and recall of the passages that hold evidence."""
        score = partial(self.passages.score, checkpoint.model)
        segmenter = self.passages.segmenter
        rows = []
        with torch.inference_mode():
            for document, question in questions:
                row = ranking(score, segmenter, document, question, self.names)
                rows.append(row)
        return rows


def as_reranker(start: Checkpoint, seed: int) -> Checkpoint:
    """A copy of a checkpoint that reads pairs of query and document.

    The copy has no lexical channel.

    A tokenizer without an end token gains one, and the embedding gains a row for it,
    drawn with ``seed``.
    """
    tokenizer = start.tokenizer
    config = start.model.config
    if all(tokenizer.token_to_id(name) is None for name in END_TOKENS):
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.add_special_tokens([END_TOKENS[0]])
        vocab_size = max(config.vocab_size, tokenizer.get_vocab_size())
        config = replace(config, vocab_size=vocab_size)
    settings = ScannerSettings()
    torch.manual_seed(seed)
    model = new_model(config, settings).to(start.model.device)
    weights = start.model.state_dict()
    with torch.no_grad():
        for name, target in model.state_dict().items():
            source = weights[name]
            target[: len(source)] = source  # a larger vocabulary has more rows
    return replace(
        start, model=model, settings=settings, tokenizer=tokenizer, word_vectors=None
    )
