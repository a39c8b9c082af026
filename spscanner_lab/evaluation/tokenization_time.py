"""How long a retriever tokenizes, which the seconds of the paper leave out.

Section 5.6 of the Single-Pass Scanner paper counts what models compute. Here a question
is timed whole, and its texts are then tokenized once more, alone. For scorers whose
tokenizer cannot be seen, and for those that use none, there is no such time.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from spscanner_lab.evaluation.work import ENCODER_BATCH, CutText, batches
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.encoder.window_encoder import WindowEncoder
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.tokenization import EndRule, encode_question, tokenize_units

Tokenize = Callable[[Sequence[str], CutText], None]
"""Tokenizes queries and a text, as a scorer does when it reads them first."""


def tokenize_of(scorer: Scorer) -> Tokenize | None:
    """The tokenization of a scorer, or None if it cannot be timed alone."""
    if isinstance(scorer, Scanner):
        return partial(_as_scanner, scorer)
    if isinstance(scorer, Dense) and scorer.sentence_transformer is not None:
        return partial(_as_embedding_model, scorer)
    return None


def tokenization_seconds(
    tokenize: Tokenize, queries: Sequence[str], text: CutText
) -> float:
    """Seconds to tokenize queries and a text, once."""
    begun = time.perf_counter()
    tokenize(queries, text)
    return time.perf_counter() - begun


def _as_scanner(scanner: Scanner, queries: Sequence[str], text: CutText) -> None:
    """Tokenize for the reader, and for the encoder if it is one of tokens."""
    reading = scanner.reading
    for query in queries:
        encode_question(reading.tokenizer, query)
    end_rule: EndRule = "last_character" if reading.folds else "contained"
    tokenize_units(reading.tokenizer, text.units, end_rule)
    meaning = scanner.meaning
    if meaning is None or not isinstance(meaning.encoder, WindowEncoder):
        return
    for query in queries:
        meaning.encoder.question_ids(query)
    for unit in text.units:
        meaning.encoder.ids(text.text[unit.start : unit.end])


def _as_embedding_model(dense: Dense, queries: Sequence[str], text: CutText) -> None:
    """Tokenize in the batches of sentence-transformers, the longest units first."""
    model: Any = dense.sentence_transformer
    passages = sorted(dense.passages_of(*text), key=len, reverse=True)
    for batch in [*batches(passages, ENCODER_BATCH), list(queries)]:
        model.tokenizer(
            batch, truncation=True, max_length=model.max_seq_length, padding=True
        )
