"""The languages of the parts of a text, and of a question.

`languages.language_of` tells one language of a whole text, for its words. What is told
here is finer and more careful about English: a question of a few words has a language,
a text may change its language, and what is in no known language is not English.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from spscanner_rag.text.languages import ENGLISH, OTHER, STOP_WORDS, STOP_WORDS_OF
from spscanner_rag.text.scripts import (
    FIRST_OTHER,
    HAN,
    LATIN,
    UNSPACED,
    main_script,
    script_of,
)

UNKNOWN: Final = ""
"""The language of what shows none, such as a table of numbers."""

MIXED_SHARE: Final = 0.2
"""From this share of words in other languages on, a text is not English."""

_WORD = re.compile(r"[^\W\d_]+")
_PART_WORDS = 40  # of consecutive sentences that are told together
_CLEAR_SHARE = 0.2  # of a sentence's words that tell its language without others
_CLEAR_LEAD = 2  # times as many as are stop words of English, or of another language
_DISTINCT = 2  # different stop words that tell a language
_SHARE = 0.1  # and the share of a part's words that they must be
_ACCENTED_SHARE = 0.02  # of the letters of a part that is not English
_PROSE_WORDS = 40  # in small letters, without a stop word, that are no English table
_HAN_LETTERS = 2  # Latin ones that say as much as a Han character
_LETTERS_OF_WORD = {HAN: 2, **dict.fromkeys(UNSPACED, 4)}  # without white space
_LATIN_RUN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_NOT_ENGLISH = "¿¡ßıİğĞşŞłŁøØåÅæÆœŒñÑãÃõÕ"

# Question words, and verbs of questions: in no name, so one is enough.
_ASKING_WORDS = {
    "german": "ist sind wer wem wie wann warum wieso welche welcher welches welchem"
    " welchen wieviel wessen wozu wofür womit wodurch worauf woran worin worüber wovon"
    " wogegen",
    "french": "quand où combien quel quelle quels quelles pourquoi",
    "spanish": "quién quiénes qué cuándo cuánto cuánta cuántos cuántas dónde cuál"
    " cuáles cómo",
    "italian": "cosa quando dove quanti quante perché quale quali",
    "portuguese": "quem onde quantos quantas quais",
    "dutch": "wat wie wanneer waar waarom welk welke hoeveel",
    "swedish": "vem vad när",
    "danish": "hvad hvem hvor hvornår",
    "norwegian": "hva hvem hvor",
    "finnish": "kuka mikä missä milloin",
    "polish": "kto kiedy gdzie dlaczego",
    "czech": "kdo kdy proč kolik",
    "turkish": "nedir neydi nelerdir nerede nerededir hangi kaç neden kimdir kimdi"
    " kimler zamandı",  # noqa: RUF001
    "indonesian": "siapa kapan berapa",
    "vietnamese": "đâu mấy",
}
_ASKING_WORDS_OF = {
    language: frozenset(words.split()) for language, words in _ASKING_WORDS.items()
}

# Letters and marks of one language alone; names in English questions may have them.
_LETTERS_OF = {
    "spanish": re.compile("[¿¡]"),
    "turkish": re.compile("[ğĞıİ]"),
    "vietnamese": re.compile("[ơƠưƯ\u1ea0-\u1ef9]"),
}

_LATIN_LANGUAGES = tuple(
    language
    for language, words in STOP_WORDS_OF.items()
    if main_script((word, 1) for word in words) == LATIN
)


def _languages_of_words() -> dict[str, tuple[str, ...]]:
    languages: dict[str, tuple[str, ...]] = {}
    for language in _LATIN_LANGUAGES:
        for word in STOP_WORDS_OF[language]:
            if len(word) > 1:
                languages[word] = (*languages.get(word, ()), language)
    return languages


_LANGUAGES_OF_WORD = _languages_of_words()


@dataclass(slots=True)
class _Part:
    """Consecutive sentences that are told together."""

    words: list[str] = field(default_factory=list)
    language: str = UNKNOWN  # of the last sentence that told one by itself

    def ends_before(self, words: Sequence[str], language: str) -> bool:
        """Whether the sentence that comes next begins a part."""
        most_words = _PART_WORDS
        if language == UNKNOWN:
            most_words *= 2  # it is told with what stands before it
        if len(self.words) >= most_words:
            return True
        if self.words and words and _is_latin(self.words) != _is_latin(words):
            return True
        return UNKNOWN not in (self.language, language) and self.language != language


def part_languages(sentences: Sequence[str]) -> list[str]:
    """The language of each sentence, told from it and its neighbours: (sentences,).

    It is the name of a language or of a script, or `UNKNOWN`.

    Examples
    --------
    >>> part_languages(["The mill was founded in 1782.", "谁建立了磨坊"])
    ['english', 'han']
    """
    languages: list[str] = []
    part = _Part()
    for number, sentence in enumerate(sentences):
        words = _WORD.findall(sentence)
        language = _clear_language(words)
        if part.ends_before(words, language):
            languages += [_language_of_part(part.words)] * (number - len(languages))
            part = _Part()
        part.words += words
        part.language = language or part.language
    languages += [_language_of_part(part.words)] * (len(sentences) - len(languages))
    return languages


def is_english(sentences: Sequence[str]) -> bool:
    """Return whether a text may be read as English.

    So may one whose parts show no language, such as a table, but not prose without any
    stop word.
    """
    n_words: Counter[str] = Counter()
    n_small = 0
    languages = part_languages(sentences)
    for sentence, language in zip(sentences, languages, strict=True):
        words = _WORD.findall(sentence)
        n_words[language] += _n_words(words)
        n_small += sum(word.islower() for word in words)
    total = n_words.total()
    n_unknown = n_words[UNKNOWN]
    if n_unknown == total:
        return n_small < max(_PROSE_WORDS, total / 2)
    return total - n_words[ENGLISH] - n_unknown < MIXED_SHARE * total


def question_language(question: str) -> str:
    """The language of a question, or its script, or `UNKNOWN`.

    Examples
    --------
    >>> question_language("Wer hat den Vertrag unterzeichnet?")
    'german'
    >>> question_language("treaty signature"), question_language("谁签署了条约")
    ('', 'han')
    """
    words = _WORD.findall(question)
    letters_of_others = _letters_of_other_scripts(words)
    for script, n_letters in letters_of_others.most_common(1):
        weight = _HAN_LETTERS if script == HAN else 1
        if weight * n_letters >= max(_n_latin_letters(words), _DISTINCT):
            return script
    distinct_words = {word.lower() for word in words}
    counts = _stop_word_counts(distinct_words)
    n_english = counts.pop(ENGLISH, 0)
    _count_asking(counts, question, words)
    for language, count in counts.most_common(1):
        n_own = count - len(distinct_words & STOP_WORDS & STOP_WORDS_OF[language])
        n_only_english = len(distinct_words & STOP_WORDS - STOP_WORDS_OF[language])
        if not n_only_english and not question.isascii():
            n_own += 1  # names in English questions have accents too
        if n_own >= _DISTINCT and n_own > 2 * n_only_english:
            return language
    if n_english:
        return ENGLISH
    for script, n_letters in letters_of_others.most_common(1):
        if n_letters >= _DISTINCT:
            return script
    is_accented = any(letter in question for letter in _NOT_ENGLISH)
    return OTHER if is_accented and len(words) > _DISTINCT else UNKNOWN


def _count_asking(counts: Counter[str], question: str, words: Sequence[str]) -> None:
    """Add to the counts of languages what only a question in one of them has."""
    no_acronyms = {word.lower() for word in words if not word.isupper()}
    for language, asking_words in _ASKING_WORDS_OF.items():
        counts[language] += _DISTINCT * len(no_acronyms & asking_words)
    if len(words) <= _DISTINCT:
        return  # it may be a name
    for language, letters in _LETTERS_OF.items():
        if letters.search(question):
            counts[language] += _DISTINCT


def _clear_language(words: Sequence[str]) -> str:
    """The language of a sentence that many of its words tell, or `UNKNOWN`."""
    counts = _stop_word_counts(words)
    n_english = counts.pop(ENGLISH, 0)
    for language, count in counts.most_common(1):
        if n_english > _CLEAR_LEAD * count:
            break
        is_frequent = count >= max(_DISTINCT, _CLEAR_SHARE * len(words))
        if not is_frequent or count <= _CLEAR_LEAD * n_english:
            return UNKNOWN
        return language if _n_distinct(words, language) >= _DISTINCT else UNKNOWN
    is_frequent = n_english >= max(_DISTINCT, _CLEAR_SHARE * len(words))
    return ENGLISH if is_frequent else UNKNOWN


def _language_of_part(words: Sequence[str]) -> str:
    """The language of some 40 words."""
    script = _script_of(words)
    if script != LATIN or not words:
        return UNKNOWN if script == LATIN else script
    counts = _stop_word_counts(words)
    n_english = counts.pop(ENGLISH, 0)
    least = max(n_english, _SHARE * len(words))
    for language, count in counts.most_common(1):
        if count > least and _n_distinct(words, language) >= _DISTINCT:
            return language
    if n_english >= _SHARE * len(words):
        return ENGLISH
    letters = "".join(words)
    n_accented = sum(not letter.isascii() for letter in letters)
    if n_accented > _ACCENTED_SHARE * len(letters):
        return OTHER
    return ENGLISH if n_english else UNKNOWN


def _script_of(words: Sequence[str]) -> str:
    """The script of most letters.

    The usual case is fast.
    """
    if _is_latin(words):
        return LATIN
    return main_script((word, 1) for word in words)


def _n_words(runs: Sequence[str]) -> int:
    """How many words runs of letters have, also in scripts without white space."""
    if _is_latin(runs):
        return len(runs)
    n_words = 0
    for run in runs:
        n_words += ceil(len(run) / _LETTERS_OF_WORD.get(script_of(run[0]), len(run)))
    return n_words


def _letters_of_other_scripts(words: Sequence[str]) -> Counter[str]:
    """How many letters a question has in each script but the Latin one."""
    letters: Counter[str] = Counter()
    if _is_latin(words):
        return letters
    for word in words:
        for letter in _LATIN_RUN.sub("", word):
            letters[script_of(letter)] += 1
    letters.pop(LATIN, None)
    return letters


def _n_latin_letters(words: Sequence[str]) -> int:
    """How many Latin letters a question has that stand in no name."""
    n_letters = 0
    for word in words:
        for run in _LATIN_RUN.findall(word):
            if run.islower() or run.lower() in STOP_WORDS:
                n_letters += len(run)
    return n_letters


def _is_latin(words: Sequence[str]) -> bool:
    """Whether no letter is of another script."""
    return all(word.isascii() or max(word) < FIRST_OTHER for word in words)


def _stop_word_counts(words: Iterable[str]) -> Counter[str]:
    """How many of the words are stop words of each language."""
    counts: Counter[str] = Counter()
    for word in words:
        counts.update(_LANGUAGES_OF_WORD.get(word.lower(), ()))
    return counts


def _n_distinct(words: Iterable[str], language: str) -> int:
    stop_words = STOP_WORDS_OF[language]
    return len({word.lower() for word in words} & stop_words)
