"""Who says each sentence of a conversation, and whose words a question asks for.

"What did Ann promise?" finds what Bob promised, too: his words match as well.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.languages import STOP_WORDS
from spscanner_rag.text.turns import speaker_of

NOBODY: Final = -1
"""The speaker's number of a sentence that nobody says."""

_LOOKED_AT = 200  # sentences that decide whether a text is a conversation
_FEWEST_TURNS = 2  # of a speaker
_FEWEST_SPEAKERS = 2
_SPOKEN_SHARE = 0.5  # of the sentences
_LINES_LOOKED_AT = 3  # of a sentence: a heading may stand before the speaker
_SHORTEST_NAME = 2
_SHORTEST_PART = 3  # letters of a part of a name that stands for it
_WORD = re.compile(r"[^\W_][\w.'-]*")
_NEAR = 60  # characters before a name, or at a question's end, that are looked at
_WORD_BEFORE = re.compile(r"([^\W_]\w*)[^\w.?!]*$")

# Ann is none whose words are asked for after these: "What did they tell Ann?"
_WORDS_BEFORE_OTHERS: Final = frozenset(
    "about against ask asked at beside concerning from give gave help helped like"
    " meet met near on past regarding saw see send sent show showed tell thank thanked"
    " than to told toward towards visit visited with without".split()
)
_ACCORDING_TO = re.compile(r"\baccording to\W*$", re.IGNORECASE)
_ASKS = re.compile(
    r"\W*(?:(?:on|in|at|for|to|with|from|by) )?(?:wh(?:at|en|ere|ich|om?|ose|y)|how|is"
    r"|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may)\b",
    re.IGNORECASE,
)
_ENDS_STATEMENT = re.compile(r"[.!]\W*$")
_ASKS_WHO = re.compile(r"\W*who(?:m|se)?\b", re.IGNORECASE)
_DID = frozenset(("did", "does", "do", "has", "had", "have", "will", "would", "can"))


class Speakers(NamedTuple):
    """The speakers of a conversation.

    Parameters
    ----------
    names : tuple of str
        As the turns have them; empty for any other text.
    of_sentences : array (sentences,)
        The number of each sentence's speaker, or `NOBODY`.
    """

    names: tuple[str, ...]
    of_sentences: NDArray[np.int32]


def speakers_of(sentences: Sequence[str]) -> Speakers:
    """Return who says each sentence of a text.

    A conversation has two speakers of at least two sentences each, and they say most
    of the first 200.

    Parameters
    ----------
    sentences : sequence of str
        All sentences of a text, each after its speaker, as the models read them.

    Examples
    --------
    >>> from spscanner_rag.text.speakers import speakers_of
    >>> chat = ["Ann: Is it shut?", "Ben: It is.", "Ann: Good.", "Ben: Bye."]
    >>> speakers = speakers_of(chat)
    >>> speakers.names, speakers.of_sentences.tolist()
    (('Ann', 'Ben'), [0, 1, 0, 1])
    """
    nobody = np.full(len(sentences), NOBODY, np.int32)
    first = [_speaker(sentence) for sentence in sentences[:_LOOKED_AT]]
    if len(_names(first)) < _FEWEST_SPEAKERS:
        return Speakers((), nobody)
    n_spoken = sum(speaker != "" for speaker in first)
    if n_spoken < _SPOKEN_SHARE * len(first):
        return Speakers((), nobody)
    speakers = first + [_speaker(sentence) for sentence in sentences[_LOOKED_AT:]]
    names = _names(speakers)
    numbers = {name: number for number, name in enumerate(names)}
    said_by = [numbers.get(speaker, NOBODY) for speaker in speakers]
    return Speakers(names, np.array(said_by, np.int32))


def asked_speakers(question: str, names: Sequence[str]) -> frozenset[int]:
    """Return the numbers of those whose words a question in English asks for.

    A name counts as a whole, or by a part that no other speaker has. It does not count
    where it is an object ("tell Ann"), or where somebody else is asked for ("Who saw
    Ann?"), nor in a statement.

    Parameters
    ----------
    question : str
        The question.
    names : sequence of str
        The names of a conversation's speakers.

    Examples
    --------
    >>> from spscanner_rag.text.speakers import asked_speakers
    >>> names = ("Ann Lee", "Ben")
    >>> questions = ("What did Ann promise?", "Who told Ben?", "Who left?")
    >>> [sorted(asked_speakers(question, names)) for question in questions]
    [[0], [], []]
    """
    if _ENDS_STATEMENT.search(question[-_NEAR:]) and not _ASKS.match(question):
        return frozenset()
    asked = []
    asks_who = _ASKS_WHO.match(question) is not None
    for number, match in _named(question, names):
        text_before = question[max(match.start() - _NEAR, 0) : match.start()]
        before = _WORD_BEFORE.search(text_before)
        word_before = "" if before is None else before[1].lower()
        if asks_who and word_before not in _DID:
            continue
        is_possessive = question.startswith("'", match.end())
        is_source = _ACCORDING_TO.search(text_before) is not None
        is_object = word_before in _WORDS_BEFORE_OTHERS
        if is_possessive or is_source or not is_object:
            asked.append(number)
    return frozenset(asked)


def _speaker(sentence: str) -> str:
    """Who says a sentence, by the first of its lines that says so.

    A later sentence of a turn is read below its speaker, who then stands alone.
    """
    lines = sentence.lstrip().split("\n", _LINES_LOOKED_AT)[:_LINES_LOOKED_AT]
    for line, next_line in zip_longest(lines, lines[1:], fillvalue=""):
        beginning = line.strip()
        if beginning.endswith(":"):
            beginning = f"{beginning} {next_line.strip()}"
        speaker = speaker_of(beginning)
        if speaker:
            return speaker
    return ""


def _names(speakers: Sequence[str]) -> tuple[str, ...]:
    """The names that come back, in the order of the text."""
    names = []
    for name, count in Counter(speakers).items():
        if count >= _FEWEST_TURNS and len(name) >= _SHORTEST_NAME:
            names.append(name)
    return tuple(names)


def _named(question: str, names: Sequence[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the number of each name in a question, and where it stands."""
    parts_of_names = [_parts(name) for name in names]
    counts: Counter[str] = Counter()
    for parts in parts_of_names:
        counts.update(parts)
    question_in_small_letters = question.lower()
    for number, name in enumerate(names):
        forms = [name]
        forms += [part for part in parts_of_names[number] if counts[part] == 1]
        for form in forms:
            # most names of a long chat are not in a question: no pattern is made
            if form.lower() not in question_in_small_letters:
                continue
            match = _form_in(question, form)
            if match is not None:
                yield number, match
                break


def _form_in(question: str, form: str) -> re.Match[str] | None:
    """Where a name stands in a question.

    Questions are typed in small letters, and transcripts have names in capitals; but
    "will" and "may" are no names then.
    """
    flags = re.NOFLAG
    if (question.islower() or form.isupper()) and form.lower() not in STOP_WORDS:
        flags = re.IGNORECASE
    return re.search(rf"(?<!\w){re.escape(form)}(?!\w)", question, flags)


def _parts(name: str) -> frozenset[str]:
    """The words of a name that may stand for it."""
    parts = []
    for part in _WORD.findall(name):
        if len(part) >= _SHORTEST_PART and part[0].isupper():
            parts.append(part)
    return frozenset(parts)
