"""Training of an in-context retriever.

It learns the digits of the right code and of a teacher's candidates.
"""

import math
import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from spscanner_lab.in_context.model import BlockSearchModel, DocumentKeys, Gate
from spscanner_lab.in_context.prompt import (
    DIGITS,
    Codes,
    PromptLayout,
    digits_of,
    draw_codes,
)
from spscanner_lab.training.data.passages import (
    PassageColumn,
    PassageDraw,
    word_scores,
)
from spscanner_lab.training.recipe import Recipe

PUBLISHED = Recipe(
    steps=4082,
    sequences_per_step=128,
    learning_rate=3e-5,
    final_learning_rate=3e-6,
    warmup_share=1000 / 4082,
    dtype="float32",
    save_every=200,
)
"""The published numbers (table 7), for a pre-trained model.

They are one epoch of queries with a positive and 15 negatives.

Differences from the paper: the teacher is BM25, not cosines of Qwen3-Embedding-8B, and
has no moving average; negatives are BM25's; AdamW's betas are the scanner's, and only
matrices decay; the rate rises from near 0, not from a twentieth, and then falls to a
tenth, where the table names only the warm-up; sinks learn at the rate of all weights,
not at 1e-3, and act on every token of a query, where table 6 has rows 0, 1 and 2.
"""

# queries that share a corpus, as on each of the paper's 8 GPUs: 256 documents
TOGETHER: Final = 16
# N_0 and the largest N_eff of the sink (table 6)
FEWEST = 128
MOST = 5000


class ColumnBatch(NamedTuple):
    """Documents with codes, and queries that attend to all of them."""

    texts: list[str]
    codes: list[int]
    questions: list[str]
    # the documents of each query's column, the right one first
    columns: list[list[int]]
    teacher: list[Sequence[float]]  # a score for each document of a column


def gate_at(step: int, steps: int, draw: random.Random) -> Gate:
    """Draw the sink of a step (table 6).

    N_eff is log-uniform from 128 to 5,000, and the gate is ramped up. Of 4,082 steps,
    it begins to act at 500 and acts fully from 2,000 on; other ``steps`` have the same
    shares.
    """
    published = step / steps * PUBLISHED.steps
    return Gate(
        math.log(MOST / FEWEST) * draw.random(),
        min(1.0, max(0.0, (published - 500) / 1500)),
    )


def batch_of(
    columns: Sequence[PassageColumn], draw: random.Random, codes: Codes = "random"
) -> ColumnBatch:
    """Make a batch with newly drawn codes.

    A passage that is in several columns is one document.
    """
    texts = list(dict.fromkeys(text for column in columns for text in column.passages))
    draw.shuffle(texts)
    place = {text: number for number, text in enumerate(texts)}
    return ColumnBatch(
        texts,
        draw_codes(len(texts), draw, codes),
        [column.question for column in columns],
        [[place[text] for text in column.passages] for column in columns],
        [word_scores(column) for column in columns],
    )


class InContextObjective:
    """Learns the digits of the right document's code in a `Trainer`.

    `TOGETHER` examples of a step share a corpus.

    The weight of the auxiliary loss, on a teacher's candidates, rises to
    ``auxiliary_weight`` during warm-up; 0 is the paper's *off-policy* variant and, with
    ``codes="position"``, its *position* variant (section 3.3).
    """

    splits = False

    def __init__(
        self,
        passages: PassageDraw,
        layout: PromptLayout,
        recipe: Recipe,
        auxiliary_weight: float = 0.5,
    ) -> None:
        self._passages = passages
        self._layout = layout
        self._recipe = recipe
        self._auxiliary_weight = auxiliary_weight

    @property
    def inputs(self) -> dict[str, str]:
        """The inputs that must be the same when a run is resumed."""
        return {"auxiliary loss": f"weight {self._auxiliary_weight}"}

    def example(self, number: int, length: int) -> tuple[int, PassageColumn]:
        """Return column ``number``, whatever the lengths of its passages.

        It is a question with its positive and hard negatives.
        """
        return number, self._passages.column(number)

    def tokens(self, example: tuple[int, PassageColumn]) -> int:
        """The number of tokens in the passages of an example."""
        _, column = example
        total = 0
        for text in column.passages:
            token_ids, _ = self._layout.document(text, 0)
            total += len(token_ids)
        return total

    def losses(
        self,
        model: BlockSearchModel,
        examples: Sequence[tuple[int, PassageColumn]],
        numbers: Sequence[int],
    ) -> Iterator[Tensor]:
        """The losses of groups of columns that see each other's passages.

        They are weighted so that their sum is a mean.
        """
        recipe = self._recipe
        step = examples[0][0] // len(examples)
        draw = random.Random(f"{recipe.seed}-{step}")
        torch.manual_seed(draw.getrandbits(31))  # for the sampled digits
        rising = self._auxiliary_weight * min(
            1.0, step / max(1, round(recipe.warmup_share * recipe.steps))
        )
        model.gate = gate_at(step, recipe.steps, draw)
        for first in range(0, len(examples), TOGETHER):
            columns = [column for _, column in examples[first : first + TOGETHER]]
            batch = batch_of(columns, draw, model.settings.codes)
            with torch.autocast(
                model.device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"
            ):
                loss = batch_loss(model, batch, rising)
            yield loss * (len(columns) / len(examples))


def batch_loss(
    model: BlockSearchModel, batch: ColumnBatch, auxiliary_weight: float = 0.0
) -> Tensor:
    """The loss of a batch, averaged over digits and queries: a scalar."""
    device = model.device
    documents = model.read_documents(batch.texts, batch.codes)
    queries = [model.query_ids(question)[0] for question in batch.questions]
    # (documents, DIGITS)
    codes = torch.tensor([digits_of(code) for code in batch.codes], device=device)
    right = codes[[column[0] for column in batch.columns]]
    logits = digits_after(model, queries, documents, right[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), right.flatten())
    if not auxiliary_weight:
        return loss
    sampled = sampled_digits(model, queries, documents)
    logits = digits_after(model, queries, documents, sampled[:, :-1])
    shares = [
        torch.tensor(scores, device=device).softmax(0) for scores in batch.teacher
    ]
    # shorter columns are padded with codes of weight 0
    weights = pad_sequence(shares, batch_first=True)
    candidates = pad_sequence(
        [codes[column] for column in batch.columns], batch_first=True
    )
    return loss + auxiliary_weight * auxiliary_loss(
        logits, sampled, candidates, weights
    )


def auxiliary_targets(
    prefixes: Tensor, candidates: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Distributions of each digit after the prefix before it, and which are known.

    They are (queries, DIGITS, 10) and (queries, DIGITS).

    M_t are the candidates, (queries, candidates, DIGITS), whose code begins with the
    first t digits of the prefix, (queries, DIGITS), and q_t(x) is proportional to the
    ``weights``, (queries, candidates), of those in M_t whose digit t is x. Targets sum
    to 1, or to 0 if M_t is empty.
    """
    same = candidates == prefixes[:, None]  # (queries, candidates, DIGITS)
    begins = torch.cat(
        [torch.ones_like(same[..., :1]), same[..., :-1].cumprod(-1).bool()], -1
    )
    # (queries, candidates, DIGITS, 10)
    digits = F.one_hot(candidates, 10).to(weights.dtype)
    # (queries, DIGITS, 10)
    sums = ((weights[:, :, None] * begins)[..., None] * digits).sum(1)
    total = sums.sum(-1, keepdim=True)
    return sums / total.clamp_min(1e-12), total[..., 0] > 0


def auxiliary_loss(
    logits: Tensor, prefixes: Tensor, candidates: Tensor, weights: Tensor
) -> Tensor:
    """Cross-entropy against `auxiliary_targets`, a scalar.

    It is averaged over the places with candidates.

    ``logits``, (queries, DIGITS, 10), are those of place t after the first t digits of
    ``prefixes``.
    """
    targets, has_candidates = auxiliary_targets(prefixes, candidates, weights)
    losses = -(targets * logits.log_softmax(-1)).sum(-1)  # (queries, DIGITS)
    return losses[has_candidates].mean()


def digits_after(
    model: BlockSearchModel,
    queries: list[Tensor],
    documents: DocumentKeys,
    digits: Tensor,
) -> Tensor:
    """Logits of each digit after the digits before it: (queries, digits + 1, 10).

    Each query, (tokens,), is a row of one batch, followed by the first ``digits``,
    (queries, digits), of a code.
    """
    # (queries, digits)
    tokens = torch.tensor(model.layout.digits, device=model.device)[digits]
    rows: list[Tensor] = []
    for query, code_tokens in zip(queries, tokens, strict=True):
        rows.append(torch.cat([query, code_tokens]))
    last = torch.tensor([len(query) - 1 for query in queries], device=model.device)
    reading = model.read_queries(pad_sequence(rows, batch_first=True), documents)
    # (queries, digits + 1)
    token_numbers = last[:, None] + torch.arange(
        digits.shape[1] + 1, device=model.device
    )
    return reading.logits.gather(1, token_numbers[..., None].expand(-1, -1, 10))


@torch.no_grad()
def sampled_digits(
    model: BlockSearchModel, queries: list[Tensor], documents: DocumentKeys
) -> Tensor:
    """Draw codes digit by digit from the model's probabilities: (queries, DIGITS)."""
    digits = torch.zeros(len(queries), 0, dtype=torch.int64, device=model.device)
    for _ in range(DIGITS):
        logits = digits_after(model, queries, documents, digits)[:, -1]
        digits = torch.cat([digits, torch.multinomial(logits.softmax(-1), 1)], 1)
    return digits
