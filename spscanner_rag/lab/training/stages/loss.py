"""The losses of all stages: which sentences of a sequence answer its question; which passage of a column does."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from spscanner_rag.baselines.rerankers import PairReader
from spscanner_rag.lab.training.data.columns import PassageColumn, PassageDraw
from spscanner_rag.lab.training.data.examples import Example, ExampleSource
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import Batch, TokenSequence, group_by_length
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import readable

Column = Sequence[Any]
"""Pairs of one question, the right one first, as `MambaPairs` or `TransformerPairs` lay them out."""


class EvidenceObjective:
    """The relevance of sentences, learned from labels; ``shift`` is that of `loss_shift`."""

    def __init__(self, source: ExampleSource, recipe: Recipe, shift: float = 0.0) -> None:
        self._source, self._recipe, self._shift = source, recipe, shift

    def example(self, number: int, length: int) -> Example:
        """A question, a stretch of its document and its labels."""
        return self._source.example(number, length)

    def tokens(self, example: Example) -> int:
        """The number of tokens in the sequence."""
        return len(example.sequence.input_ids)

    def losses(self, model: ScannerModel, examples: Sequence[Example]) -> Iterator[Tensor]:
        """The parts of a step's loss, a pass each."""
        lengths = list(map(self.tokens, examples))
        for members in passes(lengths, self._recipe.tokens_per_pass, model.kernels.packs):
            yield self.loss(model, examples, members)

    def loss(self, model: ScannerModel, examples: Sequence[Example], members: Sequence[int]) -> Tensor:
        """Binary and ranking loss of some of the examples of a step, read in one pass."""
        recipe, device = self._recipe, model.device
        units = sum(len(example.relevant) for example in examples)
        weight = torch.tensor(recipe.positive_weight, device=device)
        loss = torch.zeros((), device=device)
        read = [examples[number] for number in members]
        ends = unit_states(model, [example.sequence for example in read], recipe.dtype)
        for example, states in zip(read, ends, strict=True):
            prior = example.sequence.prior
            logits = model.score(states, None if prior is None else torch.from_numpy(prior).to(device))
            relevant = torch.from_numpy(example.relevant.astype(np.float32)).to(device)  # (units,)
            shifted = logits + self._shift  # the ranking does not see the shift
            binary = F.binary_cross_entropy_with_logits(shifted, relevant, pos_weight=weight, reduction="sum")
            loss = loss + binary / units
            if (
                recipe.ranking_weight and example.relevant.any()
            ):  # without evidence there is no ranking to learn
                ranking = -(logits.log_softmax(0) * relevant).sum() / relevant.sum()
                loss = loss + recipe.ranking_weight * ranking / len(examples)
        return loss


class MambaPairs:
    """Pairs as a Mamba reranker reads them: the passage, the question and the end token, whose logit counts."""

    def __init__(self, reader: PairReader) -> None:
        self._reader = reader

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401 - its ``input_ids`` are read
        """The tokens of a pair, whose passage is cut after ``length``."""
        return self._reader.sequence(question, passage, length)

    def logits(self, model: Any, pairs: Sequence[Any], dtype: str) -> Tensor:  # noqa: ANN401
        """Logits of pairs read in one pass, (pairs,); ``dtype`` is that of matrix products."""
        logits: Tensor = model.score(torch.cat(unit_states(model, pairs, dtype)))
        return logits


class TransformerPairs(MambaPairs):
    """Pairs as a sequence classifier of transformers reads them: two texts, of which the longer one is cut."""

    def __init__(self, tokenizer: Any, most_tokens: int) -> None:  # noqa: ANN401 - transformers' own
        self._tokenizer, self._most_tokens = tokenizer, most_tokens

    def pair(self, question: str, passage: str, length: int) -> Any:  # noqa: ANN401
        """The tokens of a pair, at most ``length`` in all."""
        most = min(length, self._most_tokens)
        return self._tokenizer(readable(question), readable(passage), truncation=True, max_length=most)

    def logits(self, model: Any, pairs: Sequence[Any], dtype: str) -> Tensor:  # noqa: ANN401
        """Logits of pairs in one padded batch: (pairs,)."""
        inputs = self._tokenizer.pad(list(pairs), return_tensors="pt").to(model.device)
        with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
            logits: Tensor = model(**inputs).logits
        return logits[:, 0].float()


class RerankerObjective:
    """Softmax cross-entropy over the column (Xu et al. 2024, "State Space Models are Strong Text Rerankers").

    L = -log(exp(s_0) / sum_i exp(s_i)), where s_0 is the logit of the passage with the answer and the others are
    those of the negatives, whatever kind of model reads the pairs.
    """

    def __init__(self, passages: PassageDraw, pairs: MambaPairs, recipe: Recipe) -> None:
        self._passages, self._pairs, self._recipe = passages, pairs, recipe

    def example(self, number: int, length: int) -> Column:
        """Column ``number``, of pairs whose passages are cut after ``length`` tokens."""
        column = self._passages.column(number)
        return [self._pairs.pair(column.question, passage, length) for passage in column.passages]

    def tokens(self, example: Column) -> int:
        """The number of tokens in all pairs."""
        return sum(len(pair.input_ids) for pair in example)

    def losses(self, model: nn.Module, examples: Sequence[Column]) -> Iterator[Tensor]:
        """The parts of a step's loss; a column is not divided."""
        recipe = self._recipe
        for members in passes(list(map(self.tokens, examples)), recipe.tokens_per_pass, packs=True):
            pairs = [pair for number in members for pair in examples[number]]
            logits = pair_logits(self._pairs, model, pairs, recipe.tokens_per_pass, recipe.dtype)
            right = torch.zeros((), dtype=torch.int64, device=logits.device)  # the first one
            columns = torch.split(logits, [len(examples[number]) for number in members])
            yield torch.stack([F.cross_entropy(column, right) for column in columns]).sum() / len(examples)


class EmbedderObjective:
    """NT-Xent (Chen et al. 2020, "A Simple Framework for Contrastive Learning") between questions and passages.

    The cross-entropy of the right passage among all passages of a step, and of the right question among all its
    questions, at temperature 0.05. The library caches gradients, so that memory is that of ``tokens_per_pass``.
    """

    def __init__(self, passages: PassageDraw, model: Any, recipe: Recipe) -> None:  # noqa: ANN401
        losses = needed("sentence_transformers.sentence_transformer.losses", "an embedder", "baselines")
        self._passages, self._recipe = passages, recipe
        self._to_device = needed("sentence_transformers.util", "an embedder", "baselines").batch_to_device
        self._loss = losses.CachedMultipleNegativesRankingLoss(
            model,
            scale=20.0 if model.similarity_fn_name == "cosine" else 1.0,
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
        return int(self._features((example.question, *example.passages))["attention_mask"].sum())

    def losses(self, model: nn.Module, examples: Sequence[PassageColumn]) -> Iterator[Tensor]:
        """The loss of a step, in which each question and each right passage has a place once."""
        by_question = {column.question: column for column in examples}
        columns = {column.passages[0]: column for column in by_question.values()}.values()
        passages = zip(*(column.passages for column in columns), strict=False)  # as many as the shortest has
        texts = [[column.question for column in columns], *passages]
        kind = self._loss.model.device.type
        # entered until the gradients are computed, since the passes are repeated for them
        with torch.autocast(kind, torch.bfloat16, enabled=self._recipe.dtype == "bfloat16"):
            yield self._loss([self._features(column) for column in texts], None)

    def _features(self, texts: Sequence[str]) -> dict[str, Any]:
        model = self._loss.model
        read = model.preprocess([readable(text) for text in texts])
        features: dict[str, Any] = self._to_device(read, model.device)
        return features


def pair_logits(
    kind: MambaPairs, model: nn.Module, pairs: Sequence[Any], most_tokens: int, dtype: str
) -> Tensor:
    """Logits of pairs, (pairs,), read in passes of ``most_tokens``."""
    packs = isinstance(model, ScannerModel) and model.kernels.packs
    found: dict[int, Tensor] = {}
    for together in passes([len(pair.input_ids) for pair in pairs], most_tokens, packs):
        logits = kind.logits(model, [pairs[number] for number in together], dtype)
        found.update(zip(together, logits.unbind(), strict=True))
    return torch.stack([found[number] for number in range(len(pairs))])


def passes(lengths: Sequence[int], most_tokens: int, packs: bool) -> list[list[int]]:
    """Divide sequences into passes of ``most_tokens``, padding included, or one; ``packs``: the kernels pack."""
    if not packs:
        return group_by_length(lengths, most_tokens)
    found: list[list[int]] = []
    total = 0
    for number, tokens in enumerate(lengths):
        total += tokens
        if not found or total > most_tokens:
            found.append([])
            total = tokens
        found[-1].append(number)
    return found


def unit_states(model: ScannerModel, sequences: Sequence[TokenSequence], dtype: str) -> list[Tensor]:
    """Hidden states at the unit ends of sequences read in one pass: (units, d_model) each, float32.

    ``dtype`` is that of matrix products. Sequences are packed in one row if the kernels can, else padded.
    """
    batch = Batch.of(sequences, packed=model.kernels.packs)

    def moved(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(values).to(model.device)

    with torch.autocast(model.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        hidden, _ = model(
            moved(batch.input_ids),
            None,
            None if batch.match_classes is None else moved(batch.match_classes),
            match_features=None if batch.match_features is None else moved(batch.match_features),
            sequence_index=None if batch.numbers is None else moved(batch.numbers[None]),
            at=(moved(batch.at[0]), moved(batch.at[1])),
        )
    return list(hidden.float().split([len(sequence.positions) for sequence in sequences]))
