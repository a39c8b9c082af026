"""The languages of the parts of a text, and of a question.

`languages.language_of` tells one language of a whole text, for its words. What is told
here is finer and more careful about English: a question of a few words has a language,
a text may change its language, and what is in no known language is not English.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from spscanner_rag.text.languages import ENGLISH, OTHER, STOP_WORDS, STOP_WORDS_OF
from spscanner_rag.text.scripts import FIRST_OTHER, LATIN, main_script

UNKNOWN: Final = ""
"""The language of what shows none, such as a table of numbers."""

MIXED_SHARE: Final = 0.2
"""From this share of words in other languages on, a text is not English."""

_WORD = re.compile(r"[^\W\d_]+")
_PART_WORDS = 40  # of consecutive sentences that are told together
_DISTINCT = 2  # different stop words that tell a language
_SHARE = 0.1  # and the share of a part's words that they must be
_ACCENTED_SHARE = 0.02  # of the letters of a part that is not English
_PROSE_WORDS = 40  # in small letters, without a stop word, that are no English table
_NOT_ENGLISH = "¿¡ßıİğĞşŞłŁøØåÅæÆœŒñÑãÃõÕ"

# Question words, and verbs of questions: in no name, so one is enough.
_ASKING_WORDS = frozenset(
    "ist sind wer wie wann warum wieso welche welcher welches wieviel wessen"
    " quand où combien quel quelle quels quelles pourquoi quién quiénes qué cuándo"
    " cuánto cuántos cuántas dónde cuál cuáles cómo cosa quando dove quanti quante"
    " perché quale quali quem onde quantos quantas quais wat wie wanneer waar"
    " waarom welk welke hoeveel vem vad när hvad hvem hvor hvornår hva kuka mikä missä"
    " milloin kto kiedy gdzie dlaczego kdo kdy proč kolik nedir nerede"
    " hangi kaç neden siapa kapan berapa đâu mấy".split()
)

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


def part_languages(sentences: Sequence[str]) -> list[str]:
    """The language of each sentence, told from it and its neighbours: (sentences,).

    It is the name of a language or of a script, or `UNKNOWN`.

    Examples
    --------
    >>> part_languages(["The mill was founded in 1782.", "谁建立了磨坊"])
    ['english', 'han']
    """
    languages: list[str] = []
    words: list[str] = []
    first = 0
    for number, sentence in enumerate(sentences):
        sentence_words = _WORD.findall(sentence)
        is_other_script = bool(words) and _is_latin(words) != _is_latin(sentence_words)
        if len(words) >= _PART_WORDS or (sentence_words and is_other_script):
            languages += [_language_of_part(words)] * (number - first)
            words = []
            first = number
        words += sentence_words
    languages += [_language_of_part(words)] * (len(sentences) - first)
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
        n_words[language] += len(words)
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
    script = _script_of(words)
    if script != LATIN:
        return script
    distinct_words = {word.lower() for word in words}
    counts = _stop_word_counts(distinct_words)
    n_english = counts.pop(ENGLISH, 0)
    for language, _ in counts.most_common(1):
        n_own = len(distinct_words & STOP_WORDS_OF[language] - STOP_WORDS)
        n_own += len(distinct_words & _ASKING_WORDS)
        n_only_english = len(distinct_words & STOP_WORDS - STOP_WORDS_OF[language])
        if not n_only_english and not question.isascii():
            n_own += 1  # names in English questions have accents too
        if n_own >= _DISTINCT and n_own > 2 * n_only_english:
            return language
    if n_english:
        return ENGLISH
    other_scripts = [word for word in words if len(word) > 1 and not _is_latin([word])]
    if other_scripts:
        return _script_of(other_scripts)
    is_accented = any(letter in question for letter in _NOT_ENGLISH)
    return OTHER if is_accented and len(words) > _DISTINCT else UNKNOWN


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
