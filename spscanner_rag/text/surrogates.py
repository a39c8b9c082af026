"""Lone surrogates, which Python's strings may hold and UTF-8 cannot."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    r"""The text as a model reads it: each lone surrogate becomes U+FFFD.

    The length does not change, so spans stay valid.

    Examples
    --------
    >>> replace_surrogates("half a pair: \ud83d") == "half a pair: \ufffd"
    True
    """
    return _SURROGATE.sub("\ufffd", text)
