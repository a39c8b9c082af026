"""Joined texts as a scorer has prepared them, kept within the bound of the process."""

import weakref
from collections.abc import Callable

from spscanner_rag.retrieval.block_units import units_of_blocks
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.scorers import Cancelled, PreparedText, Scorer, never, stop_if
from spscanner_rag.system.kept_values import KeptValues

PrepareText = Callable[[Scorer, JoinedText, Cancelled], PreparedText]
"""Returns a text as a scorer prepares it, or has prepared it before."""

# By the id of `Scorer.prepares_for`, taken out before another object can get it.
_values_of_scorers: dict[int, KeptValues[PreparedText]] = {}


def prepared_text(
    scorer: Scorer, joined: JoinedText, cancelled: Cancelled = never
) -> PreparedText:
    """Return a text as a scorer has prepared it.

    It is prepared unless it is kept from an earlier question. If ``cancelled`` ends
    that with `ScanCancelled`, nothing is kept.

    Examples
    --------
    >>> from spscanner_rag.baselines.bm25 import BM25
    >>> from spscanner_rag.retrieval import Piece, join_pieces
    >>> (joined,) = join_pieces([Piece(text="It rained.", key="1", source=1, start=0)])
    >>> bm25 = BM25()
    >>> prepared_text(bm25, joined) is prepared_text(bm25, joined)
    True
    """
    values = values_of(scorer)
    key = key_of(joined)
    prepared = values.get(key)
    if prepared is None:
        stop_if(cancelled, "before a text was prepared")
        units = units_of_blocks(scorer.units_of, joined)
        prepared = scorer.prepare(joined.text, units=units, cancelled=cancelled)
        values.put(key, prepared, prepared.nbytes)
    return prepared


def key_of(joined: JoinedText) -> tuple[str, tuple[int, ...]]:
    """Return what decides how a joined text is prepared."""
    return joined.digest, joined.blocks


def values_of(scorer: Scorer) -> KeptValues[PreparedText]:
    """The texts that a scorer has prepared, by `key_of`.

    They are dropped with its `Scorer.prepares_for`.
    """
    owner = scorer.prepares_for
    number = id(owner)
    values = _values_of_scorers.get(number)
    if values is None:
        new_values: KeptValues[PreparedText] = KeptValues()
        values = _values_of_scorers.setdefault(number, new_values)
        if values is new_values:  # and not those of another thread
            weakref.finalize(owner, _values_of_scorers.pop, number, None)
    return values
