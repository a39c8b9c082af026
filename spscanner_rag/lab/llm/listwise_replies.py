"""Prompts that ask a language model to rank passages, and the identifiers in its replies."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_rag.lab.llm.prompts import fenced_prompt, without_thoughts

_IDENTIFIER = re.compile(r"\[(\d{1,9})\]")
_BARE = re.compile(r"\s*\d{1,9}(?:\s*>\s*\d{1,9})*\s*")


def ranking_prompt(query: str, passages: Sequence[str]) -> str:
    """The prompt for a ranking of all passages, after RankGPT's (Sun et al., 2023, figure 1)."""
    return fenced_prompt(
        f"Rank {len(passages)} passages by their relevance to a search query. Each passage is one line that "
        "begins with its identifier, a number in brackets.",
        _sections(query, passages),
        f"Rank the {len(passages)} passages by their relevance to the query, the most relevant first. List all "
        "identifiers in this form: [2] > [1] > [3]. Write the ranking only, without a word of explanation.",
    )


def choosing_prompt(query: str, passages: Sequence[str]) -> str:
    """The prompt for the best of some passages, after those of pairwise and setwise prompting.

    Pairwise: Qin et al., 2023. Setwise: Zhuang et al., 2023.
    """
    return fenced_prompt(
        "Choose the passage that is most relevant to a search query. Each passage is one line that begins with "
        "its identifier, a number in brackets.",
        _sections(query, passages),
        f"Which of the {len(passages)} passages is most relevant to the query? Write its identifier only, such as "
        "[1].",
    )


@dataclass(slots=True)
class Faults:
    """What replies had wrong, counted over all calls.

    Attributes
    ----------
    failed
        Prompts without a reply; the order stays.
    missing, doubled, foreign
        Identifiers that a reply left out, repeated, or invented.
    """

    failed: int = 0
    missing: int = 0
    doubled: int = 0
    foreign: int = 0


def order_in(reply: str | None, n: int, faults: Faults) -> list[int]:
    """The order of n passages in a reply, as numbers from 0.

    Passages that the reply leaves out follow in the order in which they were; repeated and foreign identifiers are
    ignored. All of that is added to ``faults``.
    """
    listed = numbers_in(reply, n, faults)
    faults.missing += (n - len(listed)) * (reply is not None)
    return [*listed, *(number for number in range(n) if number not in set(listed))]


def numbers_in(reply: str | None, n: int, faults: Faults) -> list[int]:
    """The passages that a reply names, as numbers from 0, each once."""
    if reply is None:
        faults.failed += 1
        return []
    told = without_thoughts(reply)
    named = told if _IDENTIFIER.search(told) or not _BARE.fullmatch(told) else re.sub(r"(\d+)", r"[\1]", told)
    numbers = [int(number) - 1 for number in _IDENTIFIER.findall(named)]
    own = [number for number in numbers if 0 <= number < n]
    once = list(dict.fromkeys(own))
    faults.foreign += len(numbers) - len(own)
    faults.doubled += len(own) - len(once)
    return once


def _sections(query: str, passages: Sequence[str]) -> dict[str, str]:
    lines = (f"[{number}] {' '.join(passage.split())}" for number, passage in enumerate(passages, 1))
    return {"QUERY": query, "PASSAGES": "\n".join(lines)}
