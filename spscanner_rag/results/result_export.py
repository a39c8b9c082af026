"""Sentences and passages for JSON, as a data frame, and as HTML for a notebook."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spscanner_rag.results.excerpts import excerpt
from spscanner_rag.results.offsets import Offsets, convert_offsets
from spscanner_rag.results.passages import Passage
from spscanner_rag.results.ranking import rank
from spscanner_rag.results.sentences import ScoredSentence
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.escaping import escaped

if TYPE_CHECKING:
    import pandas

_CHARACTERS_IN_NOTEBOOKS = 500  # of each passage


def as_dictionaries(
    text: str, sentences: Sequence[ScoredSentence], offsets: Offsets
) -> list[dict[str, Any]]:
    """The sentences of a text, with their spans in the unit that ``offsets`` names.

    Examples
    --------
    >>> sentences = [ScoredSentence("Très bien.", 0, 10, logit=0.0, score=0.5)]
    >>> as_dictionaries("Très bien.", sentences, "bytes")[0]["end"]
    11
    """
    starts = np.array([sentence.start for sentence in sentences], np.int64)
    ends = np.array([sentence.end for sentence in sentences], np.int64)
    converted_starts = convert_offsets(text, starts, offsets).tolist()
    converted_ends = convert_offsets(text, ends, offsets).tolist()
    dictionaries = []
    for number, sentence in enumerate(sentences):
        dictionaries.append(
            {
                "start": converted_starts[number],
                "end": converted_ends[number],
                "score": sentence.score,
                "logit": sentence.logit,
                "text": sentence.text,
            }
        )
    return dictionaries


def as_data_frame(sentences: Sequence[ScoredSentence]) -> "pandas.DataFrame":
    """A data frame with a row for each sentence.

    ``rank`` is 1 for the best. Without pandas it raises ``ImportError``.
    """
    pandas = import_extra("pandas", "to_pandas", "pandas")
    logits = np.array([sentence.logit for sentence in sentences], np.float32)
    columns = {
        # As objects: a string column would refuse a lone surrogate where pyarrow is
        # installed.
        "text": pandas.Series([sentence.text for sentence in sentences], dtype=object),
        "start": np.array([sentence.start for sentence in sentences], np.int64),
        "end": np.array([sentence.end for sentence in sentences], np.int64),
        "logit": logits,
        "score": np.array([sentence.score for sentence in sentences], np.float64),
        "rank": np.argsort(rank(logits)) + 1,
    }
    return pandas.DataFrame(columns)


def as_html(query: str, facts: str, passages: Sequence[Passage]) -> str:
    """A query and passages with their places, as HTML without scripts.

    ``facts`` is HTML, and stands between the two.
    """
    items = ""
    for passage in passages:
        items += (
            f'<li dir="auto"><b>{passage.score:.3f}</b> {_shown(passage.text)}'
            f" <i>{_shown(passage.cite())}</i></li>"
        )
    return (
        '<div style="max-width:60em;overflow-wrap:anywhere"><b'
        f' dir="auto">{_shown(query)}</b>'
        f"<div>{facts}</div><ol>{items}</ol></div>"
    )


def _shown(text: str) -> str:
    return escaped(excerpt(text, _CHARACTERS_IN_NOTEBOOKS))
