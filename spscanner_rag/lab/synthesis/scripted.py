"""A stand-in for a language model that costs nothing: its replies have the right form and go by shared words.

It shows what a run does, offline, before money is spent: which documents are left out, how far links reach, how
many requests there are. Its questions are good for nothing else.
"""

import re
from collections import Counter
from collections.abc import Sequence

from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.text.languages import STOP_WORDS

NAME = "scripted"

SECTION = re.compile(r"^\[BEGIN (.+?) ([0-9a-f]{32})\]\n(.*?)\n\[END \1 \2\]$", re.DOTALL | re.MULTILINE)
_UNIT = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]{5,}")
_MOST_LINKS = 5


def scripted_reply(prompt: str) -> str:
    """Return the reply to a prompt of this package; raises ``ValueError`` for another prompt."""
    sections = {title: text for title, _, text in SECTION.findall(prompt)}
    units = {title: _UNIT.findall(text) for title, text in sections.items()}
    match sorted(sections):
        case ["CHUNK", "UNITS"]:
            return _links(sections["CHUNK"], units["UNITS"])
        case ["CONNECTION", *_]:
            return f"QUESTION: {_question(_words(sections['CONNECTION'].partition(':')[2]))}"
        case ["QUESTION", "UNITS"]:
            found = _holding(_words(sections["QUESTION"].partition(" about ")[2]), units["UNITS"])
            return f"RELEVANT: {'YES' if found else 'NO'}\nINDICES: {_numbers(found)}"
        case ["SENTENCES"] | ["FIRST PART", "SECOND PART"]:
            return _question_on(*units.values())
        case names:
            raise ValueError(f"the scripted model got a prompt with {', '.join(names)}; expected one of ours")


SCRIPTED = LanguageModel(NAME, scripted_reply)


def _links(chunk: str, units: Sequence[str]) -> str:
    """Link the units that share the rarest words with the chunk."""
    chunk_words = set(_words(chunk))
    shared = [chunk_words.intersection(_words(unit)) for unit in units]
    common = Counter(word for words in shared for word in words)
    best = sorted(
        (min(common[word] for word in words), number) for number, words in enumerate(shared) if words
    )
    links = [
        f"LINKS {number}: Both tell of this: {', '.join(_rarest(shared[number], common))}."
        for _, number in best[:_MOST_LINKS]
    ]
    return "\n".join(links) or "LINKS: NONE"


def _rarest(words: set[str], common: Counter[str]) -> list[str]:
    return sorted(words, key=lambda word: (common[word], word))[:3]


def _question_on(*parts: Sequence[str]) -> str:
    """Ask for the rarest word that is in all parts."""
    counts = Counter(word for part in parts for sentence in part for word in _words(sentence))
    asked = _rarest(set.intersection(*(set(_words(" ".join(part))) for part in parts)), counts)[:1]
    found = [_holding(asked, part) for part in parts]
    lines = zip(("FIRST", "SECOND") if len(parts) > 1 else ("INDICES",), map(_numbers, found), strict=True)
    answer = parts[-1][found[-1][0]] if found[-1] else ""
    return "\n".join([f"QUESTION: {_question(asked)}", f"ANSWER: {answer}", *map(": ".join, lines)])


def _question(words: Sequence[str]) -> str:
    return f"What does the document tell its readers about {' and '.join(words) or 'nothing'}?"


def _holding(words: Sequence[str], units: Sequence[str]) -> list[int]:
    return [number for number, unit in enumerate(units) if set(words).intersection(_words(unit))]


def _words(text: str) -> list[str]:
    found = (match.group().lower() for match in _WORD.finditer(text))
    return list(dict.fromkeys(word for word in found if word not in STOP_WORDS))


def _numbers(found: Sequence[int]) -> str:
    return ", ".join(map(str, found)) or "NONE"
