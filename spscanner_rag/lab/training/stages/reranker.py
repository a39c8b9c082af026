"""The reranker stage: questions with known evidence, from files to a Mamba reranker of passages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.baselines.base import UnitKind, segmenter_of
from spscanner_rag.baselines.rerankers import END_TOKENS, PairReader
from spscanner_rag.checkpoint import Checkpoint, ScannerSettings, new_model
from spscanner_rag.lab.evidence.metrics import best_first, ranking_metrics
from spscanner_rag.lab.evidence.questions import Asked, Document, Question
from spscanner_rag.lab.training.data.columns import PassageDraw
from spscanner_rag.lab.training.data.questions import bm25_scores
from spscanner_rag.lab.training.loop import Objective
from spscanner_rag.lab.training.stages.evidence import EvidenceStage, Validation
from spscanner_rag.lab.training.stages.loss import MambaPairs, RerankerObjective, pair_logits
from spscanner_rag.lexical.words import index_words
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.text.units import Segmenter

RERANKED = 50
"""A validation ranks so many passages of the question's document anew: those that BM25 takes for the best."""

ScoreTexts = Callable[[str, Sequence[str]], NDArray[np.float32]]
"""From a question and texts to their logits: (texts,)."""

_MEASURES = ("mrr@10", "recall@1", "recall@10")


class RerankerStage(EvidenceStage):
    """Trains a reranker on questions of ``--data``; it has no lexical channel."""

    measured = "validation_ranking"

    def start(self) -> Checkpoint:
        """The reranker to train."""
        checkpoint = as_reranker(super().start(), self._recipe.seed)
        self._pairs = MambaPairs(PairReader(checkpoint.tokenizer))
        return checkpoint

    def objective(self, start: Checkpoint) -> Objective:
        """The passage with the answer among hard negatives."""
        return RerankerObjective(self.passages(), self._pairs, self._recipe)

    def passages(self) -> PassageDraw:
        """The supply of questions with passages."""
        self._segmenter = segmenter_of(cast(UnitKind, self._recipe.rerank_unit))
        self._drawn = passages = PassageDraw(self._documents, self._recipe, self._segmenter)
        return passages

    def finish(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint as it is: only the order of a reranker's logits is trained."""
        return checkpoint

    def validate(self, checkpoint: Checkpoint, final: bool) -> Validation | None:
        """MRR and recall of the passages that hold evidence."""
        sample = self._validation_sample(final)
        if not sample:
            return None
        with torch.inference_mode():
            measures = validate(partial(self.score, checkpoint.model), self._segmenter, sample)
        return Validation.of(measures["macro"]["mrr@10"], measures, "ranking")

    def score(self, model: Any, question: str, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ANN401
        """The logits of texts, (texts,), by which a validation ranks them."""
        recipe = self._recipe
        pairs = [self._pairs.pair(question, text, max(recipe.sequence_tokens)) for text in texts]
        return pair_logits(self._pairs, model, pairs, recipe.tokens_per_pass, "float32").cpu().numpy()


def validate(
    score: ScoreTexts, segmenter: Segmenter, sample: Mapping[str, Sequence[Asked]]
) -> dict[str, dict[str, float]]:
    """Mean measures by source and their "macro"; evidence beyond the `RERANKED` best of BM25 is not found."""
    found = {
        source: _means([_measured(score, segmenter, *asked) for asked in questions])
        for source, questions in sample.items()
    }
    return found | {"macro": _means(list(found.values()))}


def _measured(
    score: ScoreTexts, segmenter: Segmenter, document: Document, question: Question
) -> dict[str, float]:
    text = document.text
    units = segmenter.segment(text)
    spans = Spans.of(units)
    relevant = relevant_units(spans.starts, spans.ends, question.evidence)
    if not relevant.any():
        return dict.fromkeys(_MEASURES, 0.0)
    first = bm25_scores(index_words([unit.model_text for unit in units]), question.text)
    best = best_first(first)[:RERANKED]
    scores = np.full(len(units), -np.inf)
    scores[best] = score(question.text.strip(), [text[units[n].start : units[n].end] for n in best])
    measured = ranking_metrics(scores, relevant, (1, 10))
    return {name: measured[name] for name in _MEASURES}


def _means(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([value[name] for value in values])) for name in values[0]}


def as_reranker(start: Checkpoint, seed: int) -> Checkpoint:
    """A copy of a checkpoint that reads pairs of query and document, without the lexical channel.

    A tokenizer without an end token gains one, and the embedding a row for it, which ``seed`` determines.
    """
    tokenizer, config = start.tokenizer, start.model.config
    if all(tokenizer.token_to_id(name) is None for name in END_TOKENS):
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.add_special_tokens([END_TOKENS[0]])
        config = replace(config, vocab_size=max(config.vocab_size, tokenizer.get_vocab_size()))
    settings = ScannerSettings()
    torch.manual_seed(seed)
    model = new_model(config, settings).to(start.model.device)
    own = start.model.state_dict()
    with torch.no_grad():
        for name, target in model.state_dict().items():
            target[: len(own[name])] = own[name]  # a larger vocabulary has further rows
    return replace(start, model=model, settings=settings, tokenizer=tokenizer, word_vectors=None)
