"""Texts that look like the name of a file, where its content was meant."""

import re

_LONGEST = 300  # characters of a path that people write
# those that `spscanner_rag.files` reads, and a few more
_ENDING = re.compile(
    r"\.(?:csv|docx?|eml|epub|geojson|htm|html|ipynb|jsonl?|log|ltx|markdown|md|mdx|msg"
    r"|ndjson|nxml|odp|ods|odt|ott|pdf|pp[st]x|pptm|ppt|rss|rst|rtf|srt|tex|text|toml"
    r"|tsv|txt|vtt|xhtml|xls[bmx]?|xml|ya?ml)",
    re.IGNORECASE,
)


def looks_like_path(text: str) -> bool:
    """Return whether a text is nothing but the name or path of a document.

    It says nothing about whether there is such a file: a text may be a stranger's, so
    no file is looked for. A name with spaces is only recognized behind a folder.

    Parameters
    ----------
    text : str
        A text that is to be scanned.

    Examples
    --------
    >>> looks_like_path("reports/2024.pdf")
    True
    >>> looks_like_path("See reports/2024.pdf")
    False
    """
    path = text.strip()
    if not path or len(path) > _LONGEST or "://" in path or "\n" in path:
        return False
    stem, dot, ending = path.rpartition(".")
    if not stem or _ENDING.fullmatch(dot + ending) is None:
        return False
    words = stem.split()
    # "See reports/2024.pdf" begins with a word, "my reports/May 2024.pdf" is rare
    return len(words) == 1 or "/" in words[0] or "\\" in words[0]
