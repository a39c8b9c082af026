"""Prompts that ask a language model to rank passages, and what it replies."""

import re
from collections.abc import Sequence

from spscanner_lab.llm.fencing import fenced_prompt
from spscanner_lab.llm.replies import without_thoughts

_IDENTIFIER = re.compile(r"\[(\d{1,9})\]")
_BARE = re.compile(r"\s*\d{1,9}(?:\s*>\s*\d{1,9})*\s*")


def ranking_prompt(query: str, passages: Sequence[str]) -> str:
    """Return the prompt for a ranking of all passages, after that of RankGPT.

    See Sun et al., 2023, figure 1.
    """
    count = len(passages)
    instructions = (
        f"Rank {count} passages by their relevance to a search query. Each passage is"
        " one line that begins with its identifier, a number in brackets."
    )
    closing = (
        f"Rank the {count} passages by their relevance to the query, the most relevant"
        " first. List all identifiers in this form: [2] > [1] > [3]. Write the ranking"
        " only, without a word of explanation."
    )
    return fenced_prompt(instructions, _sections(query, passages), closing)


def choosing_prompt(query: str, passages: Sequence[str]) -> str:
    """Return the prompt for the best of some passages.

    It is after those of pairwise (Qin et al., 2023) and of setwise prompting (Zhuang et
    al., 2023).
    """
    instructions = (
        "Choose the passage that is most relevant to a search query. Each passage is"
        " one line that begins with its identifier, a number in brackets."
    )
    closing = (
        f"Which of the {len(passages)} passages is most relevant to the query? Write"
        " its identifier only, such as [1]."
    )
    return fenced_prompt(instructions, _sections(query, passages), closing)


def passages_in(reply: str, count: int) -> list[int]:
    """Return the passages that a reply names, as numbers from 0, each once.

    Identifiers that none of the ``count`` passages has are ignored.

    Examples
    --------
    >>> from spscanner_lab.rerankers.passage_prompts import passages_in
    >>> passages_in("[3] > [1] > [3] > [9]", 3)
    [2, 0]
    """
    text = without_thoughts(reply)
    identifiers = _IDENTIFIER.findall(text)
    if not identifiers and _BARE.fullmatch(text):
        identifiers = re.findall(r"\d+", text)
    numbers = [int(identifier) - 1 for identifier in identifiers]
    return [number for number in dict.fromkeys(numbers) if 0 <= number < count]


def _sections(query: str, passages: Sequence[str]) -> dict[str, str]:
    lines = []
    for number, passage in enumerate(passages, 1):
        lines.append(f"[{number}] {' '.join(passage.split())}")
    return {"QUERY": query, "PASSAGES": "\n".join(lines)}
