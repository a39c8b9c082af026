r"""Find the ends of sentences that ``sentencex`` misses, and those that it wrongly finds.

`shadowed` replaces characters of what ``sentencex`` gets, one for one, so that its own
rules find the right place: a full stop that ends no sentence becomes a comma, and the
number of a note after a full stop more full stops. `more_starts` finds what it has no
rule for: turns of a conversation, lines of a log, sentences in items of lists.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise

from spscanner_rag.text.languages import STOP_WORDS, stop_words

_CAPITAL = "[^\\W\\d_a-zß-öø-ÿ]"
_OPENING = "[\"'“„‘«‹(\\[]*"  # noqa: RUF001
_CLOSING = "[\"'”’»›)\\]]*"  # noqa: RUF001
_RAISED = "²³¹⁰⁴-⁹"

# The number of a note: "in Riga.1 The", "fell.³ It", "fell.”2,3 It". Three others look
# like it: "Fig.2 The" and "v.2 The", which have a short word or one of
# `_BEFORE_NUMBER`, and "3.1 The".
_NUMBERS = r"\d{1,3}(?:[,–-]\d{1,3}){0,4}"  # noqa: RUF001
_BEFORE_NOTE = (
    r"(?:(?<=[a-zß-öø-ÿ]{2}[.!?])|(?<=(?:in|of|by) [12]\d{3}\.)|(?<=[a-zß-öø-ÿ]{2}[.!?][\"”’»)\]])"  # noqa: RUF001
    r"|(?<=[)\]”][.!?]))"
)
_NOTE = re.compile(
    rf"(?<=[.!?])({_CLOSING})(?:{_BEFORE_NOTE}{_NUMBERS}|[{_RAISED}]+(?:[,⁻–-][{_RAISED}]+){{0,4}})"  # noqa: RUF001
    rf"(?=\s+{_OPENING}{_CAPITAL}|\s*\Z)"
)

# Other characters that belong to the sentence before them: the end of bold or slanted
# text ("**Warning.** The"), other marks of notes, and invisible characters.
_MARKS = re.compile(
    r"(?<=[.!?])(?:[*_†‡¶｣\u00ad\u200b\u200e\u200f\u2060\ufeff\u202a-\u202e\u2066-\u2069]{1,9}|(?:\[[^\[\]\n]{1,24}\]){1,9}"
    r"|(?<=[a-zß-öø-ÿ]{2}[.!?])\(\d{1,3}\)|</\w{1,9}>)+(?=\s|\Z)"
)

# Abbreviations before a number, a letter or a bracket, after which ``sentencex`` cuts:
# those of the IEEE's reference guide and of the Chicago Manual of Style, chapter 10.
_BEFORE_NUMBER = re.compile(
    r"\.(?=\s*[\[(\d$€£]|\s+(?:[A-Z]\b(?!['’]|\.(?!\d))|[IVXLC]{2,}\b))"  # noqa: RUF001
)
_ABBREVIATION = re.compile(
    r"\b(?:[Ff]igs?|[Ee]q(?:s|n|ns)?|[Ss]ect?s?|[Vv]ols?|[Tt]abs?|[Cc]h(?:s|ap|aps)?|[Rr]efs?|[Pp]rops?|[Tt]hms?|Lem|Cor"
    r"|[Dd]efs?|[Aa]pps?|Exs?|[Aa]lgs?|Obs|Ser|Bk|Pt|Nos?|[Aa]rts?|[Pp]aras?|[Aa]pprox|pls?|al)\Z"
)

# Words that ``sentencex`` takes for abbreviations: "It ended in May. Nobody came.", "He
# told me. She left."
_BEFORE_START = rf"\.(?={_CLOSING}\s+{_OPENING}(?:[A-Z][a-z'’]|I\b"  # noqa: RUF001
_WORDS = re.compile(
    rf"\b(?:May|may|no|me|art|ill|fig|fed|miss|arc|ore|ok|OK|etc){_BEFORE_START}|\d{{1,3}}[.)]\s+[A-Z]))"
    r"|\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun"
    rf"|tsp|tbsp|oz|lbs?|yrs?|hrs?|mins?|secs?){_BEFORE_START}))"
)

# A full stop after a short word, and then a small letter; but "iPhones are" may begin a
# sentence.
_SMALL = re.compile(r"\b([^\W\d_]{1,5})\.(?=[ \xa0]+[a-zß-öø-ÿ](?![a-z]{0,2}[A-Z]))")
_SENTENCE_START = re.compile(
    r"(?:\A|[.!?]\s)\s*(?:([a-zß-öø-ÿ])(?![a-z]{0,2}[A-Z])|[^\W\d_])"
)

# "Fig. 3. The pump", "§ 4. The tenant" and, within a paragraph, "3. The tenant": the
# number belongs to the rest.
_NUMBERED = re.compile(rf"(?<!\S)\d{{1,3}}(?:\.\d{{1,2}}){{0,3}}\.(?=\s+{_CAPITAL})")
_LABEL = re.compile(
    r"(?:(?:\A|\n|[.!?;:][ \xa0]{1,2})"
    r"(?:Fig|Figure|Tab|Table|Abb|Scheme|Art|Article|Artikel|Abschnitt|Section|Clause|§)[.,]?["
    r" \xa0]?"
    r"|[.!?;:][ \xa0]{1,2})\Z"
)
_SHORT = re.compile(r"(?:\b\w{1,3}|str|Str)\.[ \xa0]{1,2}\Z")
_REACH = 16  # maximum length of a label before a number, in characters
_PICTURE = re.compile(r"(?<=\s)!(?=\[)")  # in Markdown
_ELLIPSIS = re.compile(rf"…(?={_CLOSING}\s+{_OPENING}{_CAPITAL})")

# Where an enumeration continues after a semicolon: "1. He pays the rent; 2. He keeps it
# clean."
_AFTER_SEMICOLON = re.compile(rf"(?<=;)\s+(?=\d{{1,2}}[.,)]\s+{_CAPITAL})")

# Abbreviations that ``sentencex`` lacks. German: of statutes and courts (Kirchner,
# Abkürzungsverzeichnis der Rechtssprache), and ordinal numbers after an article.
# French: Lexique des règles typographiques en usage à l'Imprimerie nationale. Italian
# and Spanish: the publications offices' interinstitutional style guides.
_LACKING = {
    "en": re.compile(
        r"\b(?:[Mm]ax|[Mm]in|[Aa]vg|[Ss]td|dev|[Ii]ncl|[Ee]xcl|[Rr]esp)\.(?=\s+[a-z])"
        r"|\b(?:Mmes|Tel|Apt|Pub|L)\.(?=\s+(?:\d|[A-Z]\w*\.? ))"
        r"|(?m:^(?:Q|(?:Chapter|Part|Book|Act|Volume) [IVXLC]{1,6})\.(?= \w))"
    ),
    "de": re.compile(
        r"\b(?:[Gg]em|BGBl|ABl|GVBl|RGBl|BAnz|Buchst|Rdnr|Rz|Tz|Ziff|Halbs|Unterabs|UAbs|Fn|Anm|Beschl|Urt|Az|Fa|Tsd|Bekl|Kl"
        r"|Rspr|Abschn|Anl|[Ii]nsb|[Ee]ntspr|[Gg]gf|[Ee]inschl|[Zz]zgl|[Ii]nkl|[Ee]xkl|Geb|Gest)\.(?=\s+[\w§(])"
        r"|\b(?:[Dd](?:er|ie|as|en|em|es)|[Zz]u[mr]|[Vv]om|[AaIi]m|[Bb]eim|[Jj]ede[rsnm]?)\s\d{1,3}\.(?=\s+\w)"
    ),
    "fr": re.compile(
        r"\b(?:MM?|Drs?|Pr|Mgr|Cie|Cass|civ|crim|chap|éd|apr|av|[A-Z]\.[A-Z]\.[A-Z])\.(?=\s+[\w§(])"
        r"|\b(?:art|fig|vol|pp?|t|n|janv|févr|juill|sept|oct|nov|déc)\.(?=\s+(?:[A-Z]\b|\d))"
        r"|\b[A-Z]\.(?=-?[A-Z]|\s+[A-Z][a-zé]|\s*\*{0,2}\d)"
    ),
    "it": re.compile(
        r"\b(?:[Dd]ott|[Ss]ig|[Aa]vv|[Ii]ng|[Oo]n|Geom|Rag|Spett|Gent|[Cc]fr|Cass|civ|pen|Trib|sez|pagg?|artt?|nn?|capp?|lett|Lgs|voll?"
        r"|S\.p\.A|S\.r\.l|p\. es)\.(?=,|\s+[\w§(])"
    ),
    "es": re.compile(r"\b(?:[Aa]prox|[Tt]el|[Ll]ic|[Ii]ng|Arq|p\. ej)\.(?=\s+[\w(])"),
}

# Abbreviations, and in German numbers, that end a sentence if the next word is one that
# many sentences begin with.
_AT_END = re.compile(
    r"\b(?:usw|etc|ecc|ff|Mio|Mrd|Tsd|Chr|MwSt|[wm]\. N|J,-C|[Aa]m"
    r" \d{1,2})[.,](?=\s+([^\W\d_]+))"
)

# "(He was late.) She left."
_BRACKETED = re.compile(
    rf"(?:\A|\n|[.!?]\s)\({_CAPITAL}[^()\n]{{1,300}}[.!?]\)\s+(?={_OPENING}{_CAPITAL})"
)

# An item of a list, which ``sentencex`` leaves whole.
_MARKER = re.compile(
    r"\s*(?:[-*+•‣◦▪·–—]|[(\[]?(?:\d{1,3}(?:\.\d{1,3}){0,5}|[A-Za-z]|[ivx]{1,5}|[IVXLC]{1,6})[.)\],]{1,2})[ \t]+"  # noqa: RUF001
)
_SEVERAL = re.compile(r"[.!?]\s|\n\S")
_NARROWEST = 40  # characters: no text is set in narrower lines
_WORD = re.compile(r"\S+")
_LINE_START = re.compile(rf"(?<=\n)(?={_OPENING}{_CAPITAL})")

# Lines that are one record each: of a log, with its time; of a table; or a turn, with
# its time or speaker.
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?"
DATED = re.compile(  # the beginning of an entry of a log, or of a message
    rf"^[ \t]*(?:\[{_CLOCK}\]|\({_CLOCK}\)|(?:[A-Z]{{4,8}}[:"
    r" ]+)?[\[(]?(?:\d{4}([-/.])\d\d\1\d\d[T ]"
    rf"|\d\d?([-./])(?:\d\d?|[A-Z][a-z]{{2}})\2\d{{2,4}}(?::|,? ))\d{{1,2}}:\d\d"
    rf"|[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}|\d\d:\d\d:\d\d\b)",
    re.MULTILINE,
)
_CELLS = re.compile(
    r"^[ \t]*\|(?=[^\n]*\|[ \t]*$)", re.MULTILINE
)  # a row of a table in Markdown
_LETTERED = re.compile(r"^[ \t]*[a-z]\)[ \t]+(?=\S)", re.MULTILINE)  # an item of a list
_LINE = re.compile(r"[^\n]+")
_NAMED = re.compile(
    rf"^[ \t]*({_CLOCK}(?=[ \t])|[^\W\d_][\w.'’-]{{0,30}}(?:"  # noqa: RUF001
    r" [A-Z][\w.'’-]{0,30}){0,3}:(?=[ \t]))",  # noqa: RUF001
    re.MULTILINE,
)


def shadowed(piece: str, language: str) -> str:
    """A text with some characters replaced, one for one, so that ``sentencex`` finds more of the right ends."""
    piece = _PICTURE.sub("A", _ELLIPSIS.sub(".", _BEFORE_NUMBER.sub(_goes_on, piece)))
    if language in _LACKING:
        piece = _LACKING[language].sub(_no_end, piece)
    if language == "en":
        piece = _WORDS.sub(lambda match: f"{match[0][:-2]}q.", piece)  # no abbreviation
    else:
        piece = _AT_END.sub(partial(_end, stop_words(language)), piece)
    small = [bool(match[1]) for match in _SENTENCE_START.finditer(piece)]
    if 2 * sum(small) < len(small):
        piece = _SMALL.sub(
            lambda own: own[0] if own[1].lower() in STOP_WORDS else _no_end(own), piece
        )
    piece = _NUMBERED.sub(partial(_number_with_the_rest, set()), piece)
    piece = _MARKS.sub(lambda match: "." * len(match[0]), piece)
    return _NOTE.sub(
        lambda match: match[1] + "." * (len(match[0]) - len(match[1])), piece
    )


def _goes_on(match: re.Match[str]) -> str:
    before = _ABBREVIATION.search(
        match.string, max(0, match.start() - _REACH), match.start()
    )
    letter = match.string[match.end() + 1 : match.end() + 2].isalpha()
    return "," if before and not (before[0] == "al" and letter) else "."


def _end(starts: Container[str], match: re.Match[str]) -> str:
    begins = match[1][0].isupper() and match[1].lower() in starts
    return f"{match[0][:-1]}!" if begins else match[0]


def _number_with_the_rest(seen: set[str], match: re.Match[str]) -> str:
    """The number of a clause, with a comma if it belongs to the text after it.

    ``seen`` has the earlier numbers.

    A number after a short word, as in "p. 4. The", is not that of a clause unless it
    continues the count.
    """
    reach = max(0, match.start() - _REACH), match.start()
    if not _LABEL.search(match.string, *reach):
        return match[0]
    *parents, last = match[0][:-1].split(".")
    before = ".".join([*parents, str(int(last) - 1)])
    seen.add(match[0][:-1])
    counts = before in seen or not _SHORT.search(match.string, *reach)
    return _no_end(match) if counts else match[0]


def _no_end(match: re.Match[str]) -> str:
    return f"{match[0][:-1]},"


def more_starts(
    shadow: str, starts: Sequence[int], cut: Callable[[str], Sequence[int]]
) -> Iterator[int]:
    """Further starts of sentences.

    ``cut`` returns those that ``sentencex`` finds in a text that is not a list.
    """
    yield from _records(shadow)
    for pattern in (_AFTER_SEMICOLON, _BRACKETED):
        yield from (match.end() for match in pattern.finditer(shadow))
    for start, end in pairwise([*starts, len(shadow)]):
        marker = _MARKER.match(shadow, start, end)
        if marker is None or not _SEVERAL.search(shadow, marker.end(), end):
            continue
        body = shadow[marker.end() : end]
        for found in cut(body):
            if found and body[found - 1].isspace() and not body[found].islower():
                yield marker.end() + found
        yield from _lines_of_item(shadow, start, end)


def _lines_of_item(shadow: str, start: int, end: int) -> Iterator[int]:
    """Starts of lines whose first word would fit on the previous line: they do not continue its sentence."""
    width = max(_NARROWEST, *map(len, shadow[start:end].splitlines()))
    for line in _LINE_START.finditer(shadow, start, end):
        before = (
            line.start()
            - 1
            - max(shadow.rfind("\n", start, line.start() - 1) + 1, start)
        )
        word = _WORD.match(shadow, line.start(), end)
        if word and before + 1 + len(word[0]) <= width:
            yield line.start()


def _fields(sign: str, line: tuple[int, str]) -> int:
    _, row = line
    return 0 if f"{sign} " in row or row[-1:] in (".", "!", "?") else row.count(sign)


def _rows(shadow: str) -> Iterator[int]:
    """Starts of CSV or TSV rows and of the next line: three with equally many separators, none before a space."""
    lines = [
        (line.start(), line[0].strip()) for line in _LINE.finditer(shadow)
    ]  # rows may be indented
    for sign in filter(shadow.count, ",;\t"):
        ended = False
        for fields, run in groupby(lines, partial(_fields, sign)):
            starts = [start for start, _ in run]
            yield from starts[:1] if ended else ()
            if ended := bool(fields) and len(starts) > 2:
                yield from starts


def _records(shadow: str) -> Iterator[int]:
    yield from _rows(shadow)
    for pattern in (DATED, _CELLS, _LETTERED):
        yield from (match.start() for match in pattern.finditer(shadow))
    named = list(_NAMED.finditer(shadow))
    times = Counter(match[1] for match in named)
    following = {shadow.find("\n", match.end()) + 1 for match in named}
    places = {
        match.start()
        for match in named
        if match[1][0].isupper() or match[1][0].isdigit()
    }
    for match in named:
        stop = shadow.find("\n", match.end()) + 1
        adjacent = match.start() in places and (
            match.start() in following or stop in places
        )
        if times[match[1]] > 1 or adjacent:
            yield match.start()
