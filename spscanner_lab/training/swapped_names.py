"""Questions about the wrong person: near misses made of a text's own names.

Who reads "What did Ann promise?" as "What did Bob promise?" finds what Ann promised. A
text that names both answers only one of them.
"""

import random
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from spscanner_rag.text.turns import turns_of

SWAPPED: Final = 3
"""Maximum number of near misses of a question."""

_WORD = r"[^\W\d_a-zß-öø-ÿ]\w+"
_NAME = re.compile(rf"\b{_WORD}(?: {_WORD}){{0,2}}\b")
_SURROUNDED = r"(?<![\w–-]){}(?![\w–-])(?! [^\W\d_a-zß-öø-ÿ])"  # noqa: RUF001
_SMALL_WORD = re.compile(r"\b[a-zß-öø-ÿ][\w'’]*")  # noqa: RUF001
_INSIDE_SENTENCE = re.compile(r"[\w,;)][ ]$")
_TIME_BEFORE = re.compile(r"^[\d:.,/ T-]*\d(?: ?[AaPp]\.?[Mm]\.?)? ")
_FEWEST = 2
_LONGEST_TEXT = 400_000  # characters in which names are looked for


def names_of(text: str) -> Mapping[str, int]:
    """Return how often a text has a name, for names that it has at least twice.

    A name is up to three capitalized words inside a sentence, or who speaks a turn. A
    word that the text also has in small letters is none.

    Examples
    --------
    >>> from spscanner_lab.training.swapped_names import names_of
    >>> text = "Yes, Ann Lee asked Bob. And later Bob told Ann Lee that Carl left."
    >>> names_of(text)
    {'Ann Lee': 2, 'Bob': 2}
    """
    counts: Counter[str] = Counter()
    text = text[:_LONGEST_TEXT]
    for match in _NAME.finditer(text):
        before = text[max(match.start() - 2, 0) : match.start()]
        if _INSIDE_SENTENCE.search(before):
            counts[match[0]] += 1
    for turn in turns_of(text):
        speaker = _TIME_BEFORE.sub("", turn.title)
        if speaker:
            counts[speaker] += 1
    small_words = set(_SMALL_WORD.findall(text))
    repeated = {}
    for name, count in sorted(counts.items()):
        if count >= _FEWEST and name.lower() not in small_words:
            repeated[name] = count
    return repeated


def swapped_questions(
    question: str, names: Mapping[str, int], rng: random.Random
) -> list[str]:
    """Return a question with another of a text's names in place of its own.

    There are at most `SWAPPED`; none if the question has no name of the text. Two names
    of a question are exchanged, too.

    Parameters
    ----------
    question : str
        The question.
    names : mapping of str to int
        From `names_of`.
    rng : random.Random
        Chooses the other names, frequent ones more often.

    Examples
    --------
    >>> import random
    >>> from spscanner_lab.training.swapped_names import swapped_questions
    >>> names = {"Ann": 3, "Bob": 2}
    >>> swapped_questions("What did Ann promise?", names, random.Random(0))
    ['What did Bob promise?']
    >>> swapped_questions("Who came?", names, random.Random(0))
    []
    """
    named = _named_in(question, names)
    if not named:
        return []
    swapped = []
    if len(named) > 1 and _looks_like(named[0], named[1]):
        swapped.append(_exchanged(question, named[0], named[1]))
    words_of_question = set(question.lower().split())
    others = []
    for name in names:
        if words_of_question.isdisjoint(name.lower().split()) and name not in question:
            others.append(name)
    name = rng.choice(named)
    alike = [other for other in others if _looks_like(other, name)]
    candidates = alike or others
    weights = [names[other] for other in candidates]
    while candidates and len(swapped) < SWAPPED:
        number = rng.choices(range(len(candidates)), weights)[0]
        swapped.append(_replaced(question, name, candidates.pop(number)))
        weights.pop(number)
    return swapped


def _named_in(question: str, names: Mapping[str, int]) -> list[str]:
    """The names of a text that stand in a question, none inside another."""
    place_and_name: list[tuple[int, str]] = []
    remaining = question
    for name in sorted(names, key=len, reverse=True):
        match = _pattern(name).search(remaining)
        if match is not None:
            place_and_name.append((match.start(), match[0]))
            blank = " " * len(match[0])
            remaining = remaining[: match.start()] + blank + remaining[match.end() :]
    return [name for _, name in sorted(place_and_name)]


def _looks_like(one: str, other: str) -> bool:
    """Whether two names have equally many words, and both or none in capitals."""
    same_length = len(one.split()) == len(other.split())
    return same_length and one.isupper() == other.isupper()


def _replaced(question: str, name: str, other: str) -> str:
    return _pattern(name).sub(lambda _: other, question)


def _exchanged(question: str, one: str, other: str) -> str:
    names = {one: other, other: one}
    either = re.compile(f"{_pattern(one).pattern}|{_pattern(other).pattern}")
    return either.sub(lambda match: names[match[0]], question)


def _pattern(name: str) -> re.Pattern[str]:
    """Finds a name that is not part of a longer one."""
    return re.compile(_SURROUNDED.format(re.escape(name)))
