"""The time of a scan against the same scan without the soft lexical channel, or without any."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.clock import Row, median_seconds, seconds_of, too_long
from benchmarks.example_text import text_of_tokens

if TYPE_CHECKING:
    from spscanner_rag import Scanner

LONG_QUESTION = (
    "Who nursed the young woman after she had fallen from the steps by the sea,"
    " and what did the captain say of it?"
)

WHOLE = "whole lexical channel"
WITHOUT_SOFT = "without the soft channel"
WITHOUT_ANY = "without any lexical channel"


def channel_rows(scanner: Scanner, tokens: int, repeats: int, longest: float) -> dict[str, Row]:
    """Rows of a scan of a text of about ``tokens`` tokens, with a question of 22 words.

    The scanners without a channel have the same weights less those of the channel, so what they find is of no use.
    A scanner without a soft channel has no rows.
    """
    if scanner.checkpoint.word_vectors is None:
        return {}
    scanners = {
        WITHOUT_SOFT: without_lexical_channel(scanner, soft_only=True),
        WITHOUT_ANY: without_lexical_channel(scanner, soft_only=False),
        WHOLE: scanner,
    }
    text = text_of_tokens(tokens)
    runs: dict[str, Callable[[], object]] = {
        name: partial(scanners[name].scan, LONG_QUESTION, text) for name in scanners
    }
    expected = max(seconds_of(run, scanner.device) for run in runs.values())  # the warm-up, too
    if expected > longest:
        return dict.fromkeys(runs, too_long(expected))
    seconds = median_seconds(runs, repeats, scanner.device)
    read = scanner.count_tokens(text)
    return {
        name: {
            "ms": 1e3 * taken,
            "tokens/s": read / taken,
            "whole, times this": seconds[WHOLE] / taken,
        }
        for name, taken in seconds.items()
    }


def without_lexical_channel(scanner: Scanner, *, soft_only: bool) -> Scanner:
    """A scanner with the weights of another, less those of its soft channel or of its whole lexical channel."""
    from spscanner_rag.scanner import Scanner

    checkpoint = scanner.checkpoint
    model = copy.deepcopy(checkpoint.model)
    model.soft_match = model.soft_prior = None
    settings = replace(checkpoint.settings, soft=False)
    if not soft_only:
        model.match_embedding = model.lexical_prior = model.surroundings = None
        settings = replace(settings, match=False, prior=False, surroundings=False, text_weight=0.0)
    return Scanner(replace(checkpoint, model=model, settings=settings, word_vectors=None))
