"""Checks of the options that say in which pieces a scanner reads a text."""

from spscanner_rag.checkpoint.config import CheckpointDefault
from spscanner_rag.text.segmentation import check_segmenter


def check_options(
    window_tokens: object, segment_tokens: object, segmenter: object
) -> None:
    """Raise ``ValueError`` for an unknown segmenter, or numbers of tokens below 1.

    Examples
    --------
    >>> from spscanner_rag.scan.options import check_options
    >>> check_options(0, None, None)
    Traceback (most recent call last):
    ValueError: window_tokens is 0; expected a whole number of at least 1
    """
    _check_tokens("segment_tokens", segment_tokens)
    if not isinstance(window_tokens, CheckpointDefault):
        _check_tokens("window_tokens", window_tokens)
    if segmenter is not None:
        check_segmenter(segmenter)


def _check_tokens(name: str, tokens: object) -> None:
    if tokens is None:
        return
    if type(tokens) is not int or tokens < 1:
        raise ValueError(f"{name} is {tokens!r}; expected a whole number of at least 1")
