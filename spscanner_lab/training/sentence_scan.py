"""Train a scan over sentences on what an encoder and the words say of documents.

The vectors are those of encoders that have not seen the documents: an encoder's own
training documents have better cosines than any other text.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training import Notify
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.lexical.match import match_query
from spscanner_rag.mamba2.sentence_scan import SentenceScan
from spscanner_rag.mamba2.sentence_scan_shape import SentenceScanShape
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.scan.reading import FEWEST_SCANNED, Reading
from spscanner_rag.scan.sentence_features import N_FEATURES, sentence_features
from spscanner_rag.text.folding import folded
from spscanner_rag.text.sentence_marks import question_marks

STRETCH_SHARE = 0.25  # of the examples that are cut to a stretch of their text
SHORTEST_STRETCH = FEWEST_SCANNED  # sentences
LONGEST_STRETCH = 400
ANSWERED_SHARE = 0.8  # of the stretches that are laid around evidence
BINARY_WEIGHT = 0.075  # of a sentence's own loss, beside the ranking's
WARMUP_SHARE = 0.05
LAST_RATE_SHARE = 0.05
AVERAGED_SHARE = 0.5  # of the steps, at the end, whose weights are averaged
AVERAGE_DECAY = 0.98
GRADIENT_CLIP = 1.0


@dataclass(frozen=True, slots=True)
class ScanNumbers:
    """The numbers of a sentence scan's training."""

    steps: int = 600
    examples_per_step: int = 8
    rate: float = 1e-3
    weight_decay: float = 0.05
    dropout: float = 0.2
    seed: int = 0


class ScanExample(NamedTuple):
    """A question on a text: the features of its sentences, and which are relevant."""

    source: str
    features: NDArray[np.float32]  # (sentences, features)
    relevant: NDArray[np.bool_]  # (sentences,)


def scan_examples(
    reading: Reading,
    meaning: Meaning,
    documents: Iterable[Document],
    most_questions: int,
    seed: int = 0,
) -> Iterator[ScanExample]:
    """Yield the examples of documents.

    Parameters
    ----------
    reading : Reading
        How the scanner that gets the scan reads a text; its encoder is not used.
    meaning : Meaning
        An encoder that was not trained on the documents.
    documents : iterable of Document
        With questions and their evidence.
    most_questions : int
        Maximum number of questions of a document, drawn by ``seed``.
    seed : int, default 0
        The seed of the draw.
    """
    for document in documents:
        questions = list(document.questions)
        random.Random(f"{seed} {document.doc_id}").shuffle(questions)
        if questions:
            yield from _of_document(
                reading, meaning, document, questions[:most_questions]
            )


def _of_document(
    reading: Reading,
    meaning: Meaning,
    document: Document,
    questions: Sequence[Question],
) -> Iterator[ScanExample]:
    indexed = reading.index_text(document.text)
    spans = Spans.of(indexed.units)
    vectors = meaning.vectors(indexed.sentences)
    for question in questions:
        query = folded(question.text)
        match = match_query(
            indexed.words,
            query,
            indexed.token_starts,
            indexed.token_ends,
            reading.match_options,
        )
        features = sentence_features(
            meaning.cosines(query, vectors),
            match.scores,
            indexed.marks,
            question_marks(query),
        )
        relevant = relevant_units(spans.starts, spans.ends, question.evidence)
        yield ScanExample(document.source, features, relevant)


def train_sentence_scan(
    examples: Sequence[ScanExample], numbers: ScanNumbers, notify: Notify
) -> SentenceScan:
    """Train a sentence scan, and return the average of its last steps' weights.

    Every source is drawn equally often.

    Parameters
    ----------
    examples : sequence of ScanExample
        From `scan_examples`.
    numbers : ScanNumbers
        How it is trained.
    notify : callable
        Called with the mean loss now and then.

    Raises
    ------
    ValueError
        If no example has a relevant sentence.
    """
    if not any(example.relevant.any() for example in examples):
        raise ValueError(
            "got no question with evidence to train a sentence scan on; expected"
            " documents with some"
        )
    torch.manual_seed(numbers.seed)
    draw = random.Random(numbers.seed)
    scan = SentenceScan(SentenceScanShape(N_FEATURES), dropout=numbers.dropout)
    optimizer = torch.optim.AdamW(
        scan.parameters(), numbers.rate, weight_decay=numbers.weight_decay
    )
    counts = Counter(example.source for example in examples)
    weights = [1 / counts[example.source] for example in examples]
    average: dict[str, Tensor] = {}
    losses: list[float] = []
    for step in range(numbers.steps):
        for group in optimizer.param_groups:
            group["lr"] = numbers.rate * _rate_share(step, numbers.steps)
        drawn = draw.choices(examples, weights, k=numbers.examples_per_step)
        loss = torch.stack([_loss(scan, example, draw) for example in drawn]).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(scan.parameters(), GRADIENT_CLIP)
        optimizer.step()
        losses.append(loss.item())
        if step >= (1 - AVERAGED_SHARE) * numbers.steps:
            _add_to_average(average, scan)
        if (step + 1) % 100 == 0:
            notify(
                f"step {step + 1:,} of {numbers.steps:,}  loss"
                f" {np.mean(losses[-100:]):.3f}"
            )
    scan.load_state_dict(average)
    return scan.eval()


def _rate_share(step: int, steps: int) -> float:
    """The share of the learning rate in a step: a warm-up, then a line downwards."""
    warmup = min(1.0, (step + 1) / (WARMUP_SHARE * steps))
    return warmup * (1 - (1 - LAST_RATE_SHARE) * step / steps)


def _loss(scan: SentenceScan, example: ScanExample, draw: random.Random) -> Tensor:
    """How much better irrelevant sentences are than relevant ones, and each alone."""
    part = _stretch(example.relevant, draw)
    relevant = torch.from_numpy(example.relevant[part])
    logits = scan(torch.from_numpy(example.features[part])[None])[0]
    alone = binary_cross_entropy_with_logits(logits, relevant.float(), reduction="sum")
    loss: Tensor = BINARY_WEIGHT * alone
    if relevant.any() and not relevant.all():
        excess = logits[~relevant].logsumexp(0) - logits[relevant]
        loss = loss + softplus(excess).mean()
    return loss


def _stretch(relevant: NDArray[np.bool_], draw: random.Random) -> slice:
    """The whole text or, in `STRETCH_SHARE` of the cases, a stretch of it."""
    n_sentences = len(relevant)
    if n_sentences <= SHORTEST_STRETCH or draw.random() >= STRETCH_SHARE:
        return slice(0, n_sentences)
    length = draw.randint(SHORTEST_STRETCH, min(n_sentences, LONGEST_STRETCH))
    first = draw.randint(0, n_sentences - length)
    if relevant.any() and draw.random() < ANSWERED_SHARE:
        evidence = draw.choice(np.flatnonzero(relevant).tolist())
        first = evidence - draw.randint(0, length - 1)
    first = min(max(first, 0), n_sentences - length)
    return slice(first, first + length)


def _add_to_average(average: dict[str, Tensor], scan: SentenceScan) -> None:
    for name, weight in scan.state_dict().items():
        before = average.get(name, weight)
        average[name] = torch.lerp(weight, before, AVERAGE_DECAY).clone()
