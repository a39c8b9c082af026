"""A stand-in for a language model that replies to this package's prompts for nothing.

Its replies have the right form and follow from words that texts share; they are for
trying a command out, and for tests.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from spscanner_lab.llm.language_models import (
    LanguageModel,
    language_model_of,
    named_model,
)
from spscanner_rag.text.languages import STOP_WORDS

NAME = "scripted"

SECTION = re.compile(
    r"^\[BEGIN (.+?) ([0-9a-f]{32})\]\n(.*?)\n\[END \1 \2\]$", re.DOTALL | re.MULTILINE
)
_UNIT = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]{5,}")
_MOST_LINKS = 5
_REASON_FIRST = "nothing else:\nREASON: text on one line\n"


def model_of(llm: object) -> LanguageModel:
    """Load a model by name, or wrap a model of either framework.

    A name is one of `named_model`, or "scripted".

    Examples
    --------
    >>> from spscanner_lab.synthesis.scripted import model_of
    >>> model_of("scripted").name
    'scripted'
    """
    if llm == NAME:
        return LanguageModel(NAME, scripted_reply)
    if isinstance(llm, str):
        return named_model(llm)
    return language_model_of(llm)


def scripted_reply(prompt: str) -> str:
    """Return the scripted reply to a prompt of this package, with a reason if asked.

    ``ValueError`` for any other prompt.
    """
    sections = {title: text for title, _, text in SECTION.findall(prompt)}
    reply = _reply_to(sections)
    if _REASON_FIRST in prompt:
        return f"REASON: These are the words.\n{reply}"
    return reply


def _reply_to(sections: Mapping[str, str]) -> str:
    match sorted(sections):
        case ["CHUNK", "UNITS"]:
            return _links(sections["CHUNK"], _units(sections["UNITS"]))
        case ["CONNECTION", *_]:
            shared_words = sections["CONNECTION"].partition(":")[2]
            return f"QUESTION: {_question(_words(shared_words))}"
        case ["QUESTION", "UNITS"]:
            subject = sections["QUESTION"].partition(" about ")[2]
            return _labels(subject, _units(sections["UNITS"]))
        case ["ANSWER", "QUESTION", "SENTENCES"]:
            return _labels(sections["ANSWER"], _units(sections["SENTENCES"]))
        case ["QUESTION", "SENTENCES"]:
            return _answer(sections["QUESTION"], _units(sections["SENTENCES"]))
        case ["CANDIDATE ANSWER", "QUESTION", "REFERENCE ANSWER"]:
            return _decision(sections)
        case ["PASSAGES", "QUERY"]:
            return _ranking(sections["QUERY"], _units(sections["PASSAGES"]))
        case ["DOCUMENT", "QUESTION"]:
            relevant = _sharing(
                _words(sections["QUESTION"]), _units(sections["DOCUMENT"])
            )
            return f"SENTENCES: {_numbers(relevant)}"
        case ["SENTENCES"] | ["FIRST PART", "SECOND PART"]:
            return _question_on(*map(_units, sections.values()))
        case names:
            raise ValueError(
                f"the scripted model got a prompt with {', '.join(names)}; expected one"
                " of ours"
            )


def _units(listing: str) -> list[str]:
    """Return the units of a listing, which begin with numbers in brackets."""
    return _UNIT.findall(listing)


def _links(chunk: str, units: Sequence[str]) -> str:
    """Link the units that share the rarest words with the chunk."""
    chunk_words = set(_words(chunk))
    shared_words = [chunk_words.intersection(_words(unit)) for unit in units]
    counts: Counter[str] = Counter()
    for words in shared_words:
        counts.update(words)
    rarest_first = []
    for number, words in enumerate(shared_words):
        if words:
            count = min(counts[word] for word in words)
            rarest_first.append((count, number))
    links = []
    for _, number in sorted(rarest_first)[:_MOST_LINKS]:
        words_told = ", ".join(_rarest(shared_words[number], counts))
        links.append(f"LINKS {number}: Both tell of this: {words_told}.")
    return "\n".join(links) or "LINKS: NONE"


def _rarest(words: Iterable[str], counts: Counter[str]) -> list[str]:
    """Return the three words that come least often."""
    return sorted(words, key=lambda word: (counts[word], word))[:3]


def _labels(subject: str, units: Sequence[str]) -> str:
    """Name the units that share a word with the subject."""
    relevant = _sharing(_words(subject), units)
    decision = "YES" if relevant else "NO"
    return f"RELEVANT: {decision}\nINDICES: {_numbers(relevant)}"


def _answer(question: str, units: Sequence[str]) -> str:
    """Answer with the first unit that shares a word with the question, or the first."""
    relevant = [*_sharing(_words(question), units), 0]
    return f"ANSWERABLE: YES\nANSWER: {units[relevant[0]]}"


def _decision(sections: Mapping[str, str]) -> str:
    """Accept a candidate that has every word of the reference."""
    reference_words = set(_words(sections["REFERENCE ANSWER"]))
    candidate_words = _words(sections["CANDIDATE ANSWER"])
    decision = "YES" if reference_words.issubset(candidate_words) else "NO"
    return f"REASON: These are the words.\nDECISION: {decision}"


def _ranking(query: str, passages: Sequence[str]) -> str:
    """Rank passages by the number of words that they share with the query."""
    query_words = set(_words(query))
    shared_words = [query_words.intersection(_words(passage)) for passage in passages]
    best_first = sorted(
        range(len(passages)), key=lambda number: -len(shared_words[number])
    )
    return " > ".join(f"[{number + 1}]" for number in best_first)


def _question_on(*parts: Sequence[str]) -> str:
    """Write a question about the rarest word that all parts have."""
    counts: Counter[str] = Counter()
    for part in parts:
        for sentence in part:
            counts.update(_words(sentence))
    part_words = [set(_words(" ".join(part))) for part in parts]
    subject = _rarest(set.intersection(*part_words), counts)[:1]
    keywords = ("FIRST", "SECOND") if len(parts) > 1 else ("INDICES",)
    labels = [_sharing(subject, part) for part in parts]
    answer = ""
    if labels[-1]:
        answer = parts[-1][labels[-1][0]]
    lines = [f"QUESTION: {_question(subject)}", f"ANSWER: {answer}"]
    for keyword, numbers in zip(keywords, labels, strict=True):
        lines.append(f"{keyword}: {_numbers(numbers)}")
    return "\n".join(lines)


def _question(words: Sequence[str]) -> str:
    subject = " and ".join(words) or "nothing"
    return f"What does the document tell its readers about {subject}?"


def _sharing(words: Iterable[str], units: Sequence[str]) -> list[int]:
    """Return the numbers of the units that have one of these words."""
    wanted = set(words)
    return [
        number for number, unit in enumerate(units) if wanted.intersection(_words(unit))
    ]


def _words(text: str) -> list[str]:
    """Return the distinct long words of a text, in order, without stop words."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(text))
    return [word for word in words if word not in STOP_WORDS]


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "NONE"
