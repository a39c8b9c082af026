"""Two sentences of a text that belong together, as a question that both of them answer.

A rare name or term stands in both, and they are far apart. The question has a few words of the one sentence, and
asks for a name or number of the other, of which it has a few words, too. Where the term itself is left out, the
first sentence says which term the second one is about.
"""

import random
import re
from collections.abc import Collection, Sequence
from itertools import combinations

from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.training.pseudo.key_phrases import WordRarity
from spscanner_rag.lab.training.pseudo.masked_sentences import without_entity
from spscanner_rag.lexical.languages import STOP_WORDS

LEAST_SENTENCES, MOST_SENTENCES = 2, 12
"""A term that links sentences stands in this many of them."""

LEAST_APART = 6
"""The two sentences are at least this many sentences apart."""

TERM_SHARE = 0.5
"""Share of questions that have the term."""

LEAST_IDF = 4.0
"""A term stands in at most about one document in 55. Words like "backward" link nothing, though some are rarer."""

LEAST_NAME_IDF = 2.0
"""A name, which has a capital wherever it stands, may be in about one document in seven."""

_WORD = re.compile(r"[^\W\d_][\w'’-]{2,}")  # noqa: RUF001
_LEAST_WORDS, _MOST_WORDS = 2, 4  # of each sentence
_CHOICE = 6  # rarest terms for each question that is wanted


def linked_questions(
    text: str, spans: Sequence[tuple[int, int]], count: int, draw: random.Random, rarity: WordRarity
) -> list[Question]:
    """A `QuestionMaker` of linked sentences; their evidence is two sentences with the same rare term."""
    if not count:
        return []
    terms = _terms(text, spans, rarity)
    rarest = sorted(terms, key=lambda term: (-rarity.idf(term), term))[: _CHOICE * count]
    questions: list[Question] = []
    used: set[tuple[int, int]] = set()
    for term in draw.sample(rarest, len(rarest)):
        if len(questions) == count:
            break
        apart = [pair for pair in combinations(terms[term], 2) if pair[1] - pair[0] >= LEAST_APART]
        chosen = draw.choice(apart)
        first, second = (text[slice(*spans[number])] for number in draw.sample(chosen, 2))
        question = None if chosen in used else _linked(term, first, second, rarity, draw)
        if question is not None:
            used.add(chosen)
            questions.append(Question("linked", question, tuple(spans[number] for number in chosen)))
    return questions


def _terms(text: str, spans: Sequence[tuple[int, int]], rarity: WordRarity) -> dict[str, list[int]]:
    """Rare terms and the numbers of the sentences with each; names as the text has them, others in lower case."""
    holders: dict[str, list[int]] = {}  # in lower case
    forms: dict[str, set[str]] = {}
    inside: set[str] = set()  # words that do not only begin sentences, where a capital says nothing
    for number, (start, end) in enumerate(spans):
        for match in _WORD.finditer(text, start, end):
            word = match.group().lower()
            forms.setdefault(word, set()).add(match.group())
            if match.start() > start:
                inside.add(word)
            if number not in holders.setdefault(word, [])[-1:]:
                holders[word].append(number)
    found = {}
    for word, numbers in holders.items():
        few = LEAST_SENTENCES <= len(numbers) <= MOST_SENTENCES
        if not few or numbers[-1] - numbers[0] < LEAST_APART or word in STOP_WORDS:
            continue
        is_name = word in inside and all(form[0].isupper() for form in forms[word])
        if rarity.idf(word) >= (LEAST_NAME_IDF if is_name else LEAST_IDF):
            found[max(forms[word]) if is_name else word] = numbers  # "Vilna" rather than "VILNA"
    return found


def _linked(term: str, first: str, second: str, rarity: WordRarity, draw: random.Random) -> str | None:
    """The question of two sentences; None if one of them has too few words of its own or nothing to ask for."""
    parts = without_entity(second, draw)
    if parts is None:
        return None
    before, asked, after = parts
    other = {word.lower() for word in _WORD.findall(second)}
    clue = _clue(first, other, rarity, draw)
    words = _clue(before + " " + after, {term.lower()}, rarity, draw)
    if clue is None or words is None:
        return None
    named = [term] if draw.random() < TERM_SHARE else []
    return f"{' '.join([*named, *clue])}: {asked} {' '.join(words)}?"


def _clue(
    sentence: str, left_out: Collection[str], rarity: WordRarity, draw: random.Random
) -> list[str] | None:
    """Some of the rarer words of a sentence, in its order; None if it has too few."""
    words = list(dict.fromkeys(_WORD.findall(sentence)))
    words = [word for word in words if word.lower() not in STOP_WORDS and word.lower() not in left_out]
    if len(words) < _LEAST_WORDS:
        return None
    best = sorted(words, key=lambda word: -rarity.idf(word))[:_MOST_WORDS]
    kept = set(draw.sample(best, draw.randint(_LEAST_WORDS, len(best))))
    return [word for word in words if word in kept]
