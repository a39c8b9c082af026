"""Make of a question one that its document leaves open, so that what answered it is the best wrong sentence.

The ways are kinds of those in SQuAD 2.0 (Rajpurkar et al. 2018, Table 1): another name or number, an
opposite word, a negation, a condition, an exclusion; and the end of another question on the document.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import Final

from spscanner_rag.lab.evidence.questions import Document, Question

_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z][\w\u2019'-]+(?: [A-Z][\w\u2019'-]+)*|\b\d[\d,.]*\d\b|\b\d\b")
_YEAR: Final = re.compile(r"1\d{3}|20[0-2]\d")
_PHRASE: Final = re.compile(r" (?:in|of|for|by|from|to|with|on|at|after|before|during) ")
_DRAWN = 60  # names that are looked at

_OPPOSITES: Final = (
    "first/last before/after increase/decrease increased/decreased largest/smallest biggest/smallest north/south "
    "east/west northern/southern eastern/western more/less most/least higher/lower high/low highest/lowest "
    "begin/end began/ended start/stop started/stopped win/lose won/lost early/late earlier/later old/young "
    "older/younger oldest/youngest above/below inside/outside with/without male/female men/women man/woman "
    "mother/father brother/sister king/queen accept/reject accepted/rejected allow/forbid allowed/forbidden "
    "open/close opened/closed buy/sell bought/sold enter/leave entered/left long/short longer/shorter "
    "longest/shortest fast/slow faster/slower strong/weak hot/cold summer/winter day/night morning/evening "
    "public/private rich/poor same/different major/minor maximum/minimum positive/negative internal/external "
    "support/oppose supported/opposed agree/disagree agreed/disagreed add/remove added/removed cause/prevent "
    "caused/prevented always/never easy/difficult good/bad better/worse best/worst benefit/harm "
    "advantage/disadvantage strength/weakness common/rare permitted/prohibited required/optional upper/lower "
    "left/right modern/ancient urban/rural domestic/foreign import/export buyer/seller tenant/landlord"
)
_PAIRS: Final = [pair.split("/") for pair in _OPPOSITES.split()]
_OPPOSITE: Final = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_NEGATED: Final = {
    verb: f"{verb} not" for verb in "was were is are did does do can has had should must".split()
}


def names_of(text: str) -> list[str]:
    """The names and numbers of a text, sorted."""
    return sorted({found.group() for found in _NAME.finditer(text)})


def near_miss(question: Question, document: Document, names: Sequence[str], rng: random.Random) -> str | None:
    """The question changed in one of the ways, drawn by ``rng``, so that its evidence answers no more; or None.

    ``names`` are the document's `names_of`. None if no way that is drawn has anything to change.
    """
    asked = question.text
    known = asked + "".join(document.text[start:end] for start, end in question.evidence)
    others = [name for name in rng.sample(names, min(_DRAWN, len(names))) if name not in known]
    ways: list[Callable[[], str | None]] = [
        lambda: _another_name(asked, others, rng),
        lambda: _exchanged(asked, _OPPOSITE, rng),
        lambda: _condition(asked, others, rng),
        lambda: _another_end(asked, rng.choice(document.questions).text, known, rng),
        lambda: _exchanged(asked, _NEGATED, rng),
    ]
    for way in rng.choices(ways, (0.45, 0.25, 0.12, 0.11, 0.07), k=3):
        changed = way()
        if changed is not None:
            return changed
    return None


def _another_name(asked: str, others: Sequence[str], rng: random.Random) -> str | None:
    found = list(_NAME.finditer(asked))
    if not found:
        return None
    chosen = rng.choice(found)
    alike = [name for name in others if name[0].isdigit() == chosen.group()[0].isdigit()]
    return asked[: chosen.start()] + rng.choice(alike) + asked[chosen.end() :] if alike else None


def _exchanged(asked: str, words: dict[str, str], rng: random.Random) -> str | None:
    found = [word for word in re.finditer(r"\b[a-z]+\b", asked) if word.group() in words]
    if not found:
        return None
    chosen = rng.choice(found)
    return asked[: chosen.start()] + words[chosen.group()] + asked[chosen.end() :]


def _condition(asked: str, others: Sequence[str], rng: random.Random) -> str | None:
    fitting = [name for name in others if _YEAR.fullmatch(name) or not name[0].isdigit()]
    if not fitting:
        return None
    name = rng.choice(fitting)
    words = ("in", "before", "after") if name[0].isdigit() else ("in", "according to", "for", "besides", "by")
    return f"{asked.rstrip().rstrip('?')} {rng.choice(words)} {name}?"


def _another_end(asked: str, other: str, known: str, rng: random.Random) -> str | None:
    cuts, ends = ([found.start() for found in _PHRASE.finditer(text)] for text in (asked, other))
    if not cuts or not ends:
        return None
    end = other[rng.choice(ends) :]
    return None if end.strip(" ?") in known else asked[: rng.choice(cuts)] + end
