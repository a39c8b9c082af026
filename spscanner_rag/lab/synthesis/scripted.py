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
    names = set(sections)
    if names == {"CHUNK", "UNITS"}:
        values = _links(sections["CHUNK"], _UNIT.findall(sections["UNITS"]))
    elif "CONNECTION" in names:
        values = {"question": _question(_words(sections["CONNECTION"].partition(":")[2]))}
    elif names == {"QUESTION", "UNITS"}:
        found = _holding(_asked(sections["QUESTION"]), _UNIT.findall(sections["UNITS"]))
        values = {"relevant": "yes" if found else "no", "indices": found}
    elif names == {"SENTENCES"}:
        values = _on_one(_UNIT.findall(sections["SENTENCES"]))
    elif names == {"FIRST PART", "SECOND PART"}:
        values = _on_two(_UNIT.findall(sections["FIRST PART"]), _UNIT.findall(sections["SECOND PART"]))
    else:
        raise ValueError(
            f"the scripted model got a prompt with {', '.join(sorted(names))}; expected one of ours"
        )
    return _lines(values)


SCRIPTED = LanguageModel(NAME, scripted_reply)


def _links(chunk: str, units: Sequence[str]) -> dict[str, object]:
    """Link the units that share the rarest words with the chunk."""
    chunk_words = set(_words(chunk))
    shared = [chunk_words.intersection(_words(unit)) for unit in units]
    common = Counter(word for words in shared for word in words)
    best = sorted(
        (min(common[word] for word in words), number) for number, words in enumerate(shared) if words
    )
    links = [
        {"index": number, "connection": f"Both tell of this: {', '.join(_rarest(shared[number], common))}."}
        for _, number in best[:_MOST_LINKS]
    ]
    return {"links": links}


def _rarest(words: set[str], common: Counter[str]) -> list[str]:
    return sorted(words, key=lambda word: (common[word], word))[:3]


def _on_one(sentences: Sequence[str]) -> dict[str, object]:
    counts = Counter(word for sentence in sentences for word in set(_words(sentence)))
    asked = _rarest(set(counts), counts)[:1]
    found = _holding(asked, sentences)
    return {"question": _question(asked), "answer": sentences[found[0]] if found else "", "indices": found}


def _on_two(first: Sequence[str], second: Sequence[str]) -> dict[str, object]:
    counts = Counter(word for sentence in (*first, *second) for word in set(_words(sentence)))
    both = set(_words(" ".join(first))) & set(_words(" ".join(second)))
    asked = _rarest(both, counts)[:1]
    found = [_holding(asked, sentences) for sentences in (first, second)]
    answer = second[found[1][0]] if found[1] else ""
    return {"question": _question(asked), "answer": answer, "first": found[0], "second": found[1]}


def _question(words: Sequence[str]) -> str:
    return f"What does the document tell its readers about {' and '.join(words) or 'nothing'}?"


def _asked(question: str) -> list[str]:
    return _words(question.partition(" about ")[2])


def _holding(words: Sequence[str], units: Sequence[str]) -> list[int]:
    return [number for number, unit in enumerate(units) if set(words).intersection(_words(unit))]


def _words(text: str) -> list[str]:
    found = (match.group().lower() for match in _WORD.finditer(text))
    return list(dict.fromkeys(word for word in found if word not in STOP_WORDS))


def _lines(values: dict[str, object]) -> str:
    lines: list[str] = []
    for name, value in values.items():
        key = name.upper()
        if isinstance(value, list) and name == "links":
            lines += [f"{key} {link['index']}: {link['connection']}" for link in value] or [f"{key}: NONE"]
        elif isinstance(value, list):
            lines.append(f"{key}: {', '.join(map(str, value)) or 'NONE'}")
        else:
            lines.append(f"{key}: {str(value).upper() if value in ('yes', 'no') else value}")
    return "\n".join(lines)
