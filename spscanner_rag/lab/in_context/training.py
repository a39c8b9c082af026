"""Training of an in-context retriever."""

import random
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from spscanner_rag.lab.in_context.layout import Layout, draw_codes
from spscanner_rag.lab.in_context.losses import Batch, batch_losses
from spscanner_rag.lab.in_context.model import BlockSearchModel
from spscanner_rag.lab.training.data.columns import PassageColumn, PassageDraw
from spscanner_rag.lab.training.data.questions import bm25_scores
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.words import index_words

PUBLISHED = Recipe(
    steps=4082,
    sequences_per_step=128,
    learning_rate=3e-5,
    final_learning_rate=3e-6,
    dtype="float32",
    save_every=200,
)
"""The published numbers, for a pre-trained model: one epoch, each query with its positive and 15 hard negatives.

What differs: the teacher is BM25, not the cosines of Qwen3-Embedding-8B, and AdamW's betas are the scanner's.
"""


def word_scores(column: PassageColumn) -> Sequence[float]:
    """Score the passages of a column as a teacher: by BM25 among themselves, the labelled one above the best."""
    scores = bm25_scores(index_words(column.passages), column.question)
    scores[0] = scores.max() + 1.0
    return [float(score) for score in scores]


def batch_of(columns: Sequence[PassageColumn], draw: random.Random) -> Batch:
    """Make a batch whose codes are drawn anew; a passage of several columns is one document."""
    texts = list(dict.fromkeys(text for column in columns for text in column.passages))
    draw.shuffle(texts)
    place = {text: number for number, text in enumerate(texts)}
    return Batch(
        texts,
        draw_codes(len(texts), draw),
        [column.question for column in columns],
        [[place[text] for text in column.passages] for column in columns],
        [word_scores(column) for column in columns],
    )


class InContextObjective:
    """The digits of the right document's code, for a `Trainer`; the examples of a step are one batch.

    The weight of the auxiliary loss, of a teacher's candidates, rises to ``auxiliary_weight`` over the warm-up, 0
    for none. ``temperature`` divides the teacher's scores before their softmax.
    """

    def __init__(
        self,
        passages: PassageDraw,
        layout: Layout,
        recipe: Recipe,
        auxiliary_weight: float = 0.5,
        temperature: float = 1.0,
    ) -> None:
        self._passages, self._layout, self._recipe = passages, layout, recipe
        self._auxiliary_weight, self._temperature = auxiliary_weight, temperature

    @property
    def inputs(self) -> dict[str, str]:
        """What must be the same when a run is resumed."""
        return {"auxiliary loss": f"weight {self._auxiliary_weight}, temperature {self._temperature}"}

    def example(self, number: int, length: int) -> tuple[int, PassageColumn]:
        """Column ``number``: a question with its positive and hard negatives, of their own length."""
        return number, self._passages.column(number)

    def tokens(self, example: tuple[int, PassageColumn]) -> int:
        """The number of tokens of its passages."""
        return sum(len(self._layout.document(text, 0).ids) for text in example[1].passages)

    def losses(
        self, model: BlockSearchModel, examples: Sequence[tuple[int, PassageColumn]]
    ) -> Iterator[Tensor]:
        """The loss of all columns, which see each other's passages."""
        recipe, step = self._recipe, examples[0][0] // len(examples)
        draw = random.Random(f"{recipe.seed}-{step}")
        torch.manual_seed(draw.getrandbits(31))  # for the sampled digits
        rising = self._auxiliary_weight * min(1.0, step / max(1, round(recipe.warmup_share * recipe.steps)))
        batch = batch_of([column for _, column in examples], draw)
        with torch.autocast(model.device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
            losses = batch_losses(model, batch, bool(rising), self._temperature)
        yield losses.digits + rising * losses.auxiliary
