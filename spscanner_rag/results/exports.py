"""A result in the forms that other programs take: dictionaries, JSON and data frames."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from spscanner_rag.results.selection import rank
from spscanner_rag.results.sentences import ScoredText

if TYPE_CHECKING:
    import pandas


def as_dict(result: ScoredText) -> dict[str, Any]:
    """What `ScanResult.to_dict` returns."""
    return {
        "query": result.query,
        "characters": len(result.text),
        "tokens_read": result.tokens_read,
        "sentences": [
            {
                "start": sentence.start,
                "end": sentence.end,
                "score": sentence.score,
                "logit": sentence.logit,
                "text": sentence.text,
            }
            for sentence in result.sentences
        ],
    }


def as_json(result: ScoredText, indent: int | None) -> str:
    """What `ScanResult.to_json` returns."""
    return json.dumps(as_dict(result), indent=indent, ensure_ascii=True, allow_nan=False)


def as_frame(result: ScoredText) -> "pandas.DataFrame":
    """What `ScanResult.to_pandas` returns."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('to_pandas needs pandas: pip install "spscanner-rag[pandas]"') from error
    places = np.empty(len(result.logits), np.int64)
    places[rank(result.logits)] = np.arange(1, len(places) + 1)
    texts = [sentence.text for sentence in result.sentences]
    frame = pandas.DataFrame(
        {
            # As objects: a string column would refuse a lone surrogate where pyarrow is installed.
            "text": pandas.Series(texts, dtype=object),
            "start": result.starts.copy(),
            "end": result.ends.copy(),
            "logit": result.logits.copy(),
            "score": result.scores.copy(),
            "rank": places,
        }
    )
    frame.attrs = {"query": result.query, "characters": len(result.text), "tokens_read": result.tokens_read}
    return frame
