"""A result as HTML inside a notebook: a strip of scores, and the best sentences highlighted in their text.

Everything is in inline styles, in the notebook's own colours; the size is bounded however long the document is.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.sentences import ScoredSentence
from spscanner_rag.text.escaping import escaped

BEST = 10  # sentences that are highlighted
CONTEXT = 300  # characters shown on each side of a highlighted sentence
LONGEST = 2_000  # characters shown of one sentence
LONGEST_QUERY = 1_000
BEST_CHARACTERS = 500  # shown of the best sentence, above the text
PARTS = 240  # of the strip
_WORD = 40  # characters; a longer word may be cut

_COLOUR = "230,150,20"
_FRAME = (
    "max-width:60em;padding:12px 16px;border:1px solid rgba(128,128,128,.4);border-radius:8px;"
    "font:15px/1.5 system-ui,sans-serif"
)
_TEXT = (
    "max-height:32em;overflow:auto;border-top:1px solid rgba(128,128,128,.4);padding-top:8px;"
    "font:16px/1.6 Georgia,serif;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext"
)
_SOFT = "opacity:.7;font-size:13px"
_BADGE = (
    f"margin-right:4px;padding:0 6px;border:1px solid rgb({_COLOUR});border-radius:9px;"
    "font:600 11px/1.4 system-ui,sans-serif;vertical-align:2px"
)


def notebook_view(
    query: str,
    text: str,
    sentences: Sequence[ScoredSentence],
    profile: NDArray[np.float64],
    tokens_read: int | None,
) -> str:
    """The HTML of a result, whose ``profile`` has the best score in each of `PARTS` stretches of the text."""
    ranked = sorted(sentences, key=lambda sentence: -sentence.logit)[:BEST]
    facts = [f"{len(text):,} characters", f"{len(sentences):,} sentences"]
    if tokens_read is not None:
        facts.append(f"{tokens_read:,} tokens read")
    facts.append(f"the best {len(ranked)} are highlighted" if ranked else "no sentence to score")
    return (
        f'<div style="{_FRAME}"><div style="font-weight:650;overflow-wrap:anywhere" dir="auto">'
        f"{_cut(query, LONGEST_QUERY)}</div>"
        f'<div style="{_SOFT}">{" · ".join(facts)}</div>{_strip(profile) if ranked else ""}'
        f"{_best(ranked[0]) if ranked else ''}"
        f'<div style="{_TEXT}" dir="auto">{"".join(_excerpts(text, ranked))}</div></div>'
    )


def _best(sentence: ScoredSentence) -> str:
    """The best sentence on its own, so that the answer is seen before the text is read."""
    shown = _cut(sentence.text, BEST_CHARACTERS)
    return f'<div style="margin-bottom:8px" dir="auto">{sentence.score:.3f}: <b>{shown}</b></div>'


def _strip(profile: NDArray[np.float64]) -> str:
    """The document from left to right: the higher a bar, the better the best sentence there."""
    heights = profile / max(float(profile.max()), 1e-12) * 20
    bars = "".join(
        f"M{part} 20V{20 - height:.1f}h1V20z" for part, height in enumerate(heights) if height >= 0.5
    )
    return (
        f'<svg viewBox="0 0 {PARTS} 20" preserveAspectRatio="none" role="img" '
        'aria-label="Scores from the beginning of the document to its end" '
        'style="display:block;width:100%;height:24px;margin:8px 0;background:rgba(128,128,128,.15)">'
        f'<path d="{bars}" fill="rgb({_COLOUR})"/></svg>'
    )


def _excerpts(text: str, ranked: Sequence[ScoredSentence]) -> Iterator[str]:
    """The highlighted sentences in document order, with the text around them; the rest is left out."""
    best = ranked[0].score if ranked else 1.0
    cursor = 0  # characters shown or passed over so far
    for place, sentence in sorted(enumerate(ranked, start=1), key=lambda placed: placed[1].start):
        yield _between(text, cursor, sentence.start, first=cursor == 0)
        strength = 0.15 + 0.45 * sentence.score / max(best, 1e-12)
        yield (
            f'<b style="{_BADGE}">{place}</b><mark title="score {sentence.score:.3f}" '
            f'style="color:inherit;background:rgba({_COLOUR},{strength:.2f})">'
            f"{_cut(sentence.text, LONGEST)}</mark>"
        )
        cursor = sentence.end
    yield _between(text, cursor, len(text), first=cursor == 0, last=True)


def _between(text: str, start: int, end: int, *, first: bool = False, last: bool = False) -> str:
    """The text between two highlights; of a long one only what is next to them."""
    before, after = (0 if first else CONTEXT), (0 if last else CONTEXT)
    if end - start <= 2 * CONTEXT:
        return escaped(text[start:end])
    stop, again = start + before, end - after
    if before:  # both ends of what is left out are at white space, where there is some nearby
        stop = max((place for place in range(stop - _WORD, stop) if text[place].isspace()), default=stop)
    if after:
        again = min((place for place in range(again, again + _WORD) if text[place].isspace()), default=again)
    left_out = f'<i style="{_SOFT}"> [… {again - stop:,} characters …] </i>'
    return escaped(text[start:stop]) + left_out + escaped(text[again:end])


def _cut(text: str, characters: int) -> str:
    return escaped(text) if len(text) <= characters else f"{escaped(text[:characters])}…"
