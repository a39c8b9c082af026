"""The beginning of a text, for people."""


def excerpt(text: str, characters: int) -> str:
    """The text with at most ``characters`` characters.

    Examples
    --------
    >>> excerpt("The keeper slept.", 11)
    'The keeper…'
    """
    if len(text) <= characters:
        return text
    return text[: characters - 1] + "…"


def quoted_excerpt(text: str, characters: int = 60) -> str:
    """The text, quoted, with at most ``characters`` characters."""
    return repr(excerpt(text, characters))
