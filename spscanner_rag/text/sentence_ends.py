"""Correct the ends of sentences that ``sentencex`` misses or wrongly finds.

`correct_ends` replaces characters of what ``sentencex`` gets, one for one, so that its
own rules find the right place: a full stop that ends no sentence becomes a comma, and
the number of a note after a full stop becomes more full stops.
"""

import re
from collections.abc import Container
from functools import partial

from spscanner_rag.text.languages import STOP_WORDS, stop_words
from spscanner_rag.text.sentence_edges import CAPITAL, CLOSING, OPENING

_RAISED = "²³¹⁰⁴-⁹"

# The number of a note: "in Riga.1 The", "fell.³ It", "fell.”2,3 It". Three others look
# like it: "Fig.2 The" and "v.2 The", which have a short word or one of
# `_BEFORE_NUMBER`, and "3.1 The".
_NUMBERS = r"\d{1,3}(?:[,–-]\d{1,3}){0,4}"  # noqa: RUF001
_BEFORE_NOTE = (
    r"(?:(?<=[a-zß-öø-ÿ]{2}[.!?])|(?<=(?:in|of|by) [12]\d{3}\.)"
    r"|(?<=[a-zß-öø-ÿ]{2}[.!?][\"”’»)\]])"  # noqa: RUF001
    r"|(?<=[)\]”][.!?]))"
)
_NOTE = re.compile(
    rf"(?<=[.!?])({CLOSING})(?:{_BEFORE_NOTE}{_NUMBERS}"
    rf"|[{_RAISED}]+(?:[,⁻–-][{_RAISED}]+){{0,4}})"  # noqa: RUF001
    rf"(?=\s+{OPENING}{CAPITAL}|\s*\Z)"
)

# Other characters that belong to the sentence before them: the end of bold, slanted,
# struck or marked text ("**Warning.** The") or of a formula ("$$a = b.$$ The"), other
# marks of notes, and invisible characters. One at a time: a repetition in the
# repetition would take exponential time.
_MARKS = re.compile(
    r"(?<=[.!?])(?:"
    r"[*_~=$†‡¶｣\u00ad\u200b\u200e\u200f\u2060\ufeff\u202a-\u202e\u2066-\u2069]"
    r"|\[[^\[\]\n]{1,24}\]"
    r"|(?<=[a-zß-öø-ÿ]{2}[.!?])\(\d{1,3}\)|</\w{1,9}>)+(?=\s|\Z)"
)

# Abbreviations before a number, a letter or a bracket, after which ``sentencex`` cuts:
# those of the IEEE's reference guide and of the Chicago Manual of Style, chapter 10.
_BEFORE_NUMBER = re.compile(
    r"\.(?=\s*[\[(\d$€£]|\s+(?:[A-Z]\b(?!['’]|\.(?!\d))|[IVXLC]{2,}\b))"  # noqa: RUF001
)
_ABBREVIATION = re.compile(
    r"\b(?:[Ff]igs?|[Ee]q(?:s|n|ns)?|[Ss]ect?s?|[Vv]ols?|[Tt]abs?|[Cc]h(?:s|ap|aps)?"
    r"|[Rr]efs?|[Pp]rops?|[Tt]hms?|Lem|Cor"
    r"|[Dd]efs?|[Aa]pps?|Exs?|[Aa]lgs?|Obs|Ser|Bk|Pt|Nos?|[Aa]rts?|[Pp]aras?|[Aa]pprox"
    r"|pls?|al)\Z"
)

# Words that ``sentencex`` takes for abbreviations: "It ended in May. Nobody came.", "He
# told me. She left."
_BEFORE_START = rf"\.(?={CLOSING}\s+{OPENING}(?:[A-Z][a-z'’]|I\b"  # noqa: RUF001
_WORDS = re.compile(
    rf"\b(?:May|may|no|me|art|ill|fig|fed|miss|arc|ore|ok|OK|etc){_BEFORE_START}"
    rf"|\d{{1,3}}[.)]\s+[A-Z]))"
    r"|\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thurs?|Fri|Sat"
    r"|Sun"
    rf"|tsp|tbsp|oz|lbs?|yrs?|hrs?|mins?|secs?){_BEFORE_START}))"
)

# A unit of measure of one letter, which ``sentencex`` takes for an initial: "It is 12
# m. The gate is open."
_MEASURE = re.compile(
    rf"(?<=\d)[ \xa0\u2009\u202f]?(?:[mlhgst]|°[CF]){_BEFORE_START}))"
)

# Ordinal numbers, in languages that write them with a full stop: "im 18. und 19.
# Jahrhundert", "4. ligde". What follows is a small letter or one of these nouns.
_ORDINAL = re.compile(
    r"\b\d{1,3}\.(?=[ \xa0]+(?:[^\W\d_A-ZÀ-ÖØ-Þİ]|(?:Jahrhundert|Jahrtausend|Jahrgang"
    r"|Lebensjahr|Schuljahr|Geburtstag|Todestag|Jahrestag|Auflage|Ausgabe|Kapitel|Klasse"
    r"|Stock|Etage|Platz|Rang|Tag|Woche|Monat|Minute|Sekunde|Bezirk|Liga|Spieltag"
    r"|Weltkrieg|Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober"
    r"|November|Dezember)[a-zß]{0,2}\b))"
)
_WITH_ORDINALS = frozenset(
    "de tr da nb nn no fi cs sk pl hu hr sr sl et lv is bs".split()
)

# Abbreviations that may end a sentence, before a word that begins sentences and is no
# stop word: "It belongs to Hale Ltd. Nobody knows why."
_OPENING_WORDS = (
    "Nobody|Somebody|Everybody|Anybody|Noone|None|Someone|Everyone|Anyone|Nothing"
    "|Something|Everything|However|Therefore|Moreover|Furthermore|Nevertheless|Thus"
    "|Hence|Meanwhile|Later|Since|Although|Though|Unless|Today|Perhaps|Neither|Either"
    "|Each|Every|Many|Several|Let|Please|Yet|Still|Never|Often"
)
_AT_END_BEFORE_OPENING = re.compile(
    r"\b(?:Ltd|Inc|Corp|Co|Bros|Plc|LLC|Jr|Sr|Esq|[ap]\.m|U\.S|U\.K|D\.C|Ph\.D|M\.D"
    rf"|B\.C|A\.D|St|Ave|Rd|Blvd)\.(?=\s+(?:{_OPENING_WORDS})\b)"
)

# A full stop after a short word, and then a small letter; but "iPhones are" may begin a
# sentence.
_SMALL = re.compile(r"\b([^\W\d_]{1,5})\.(?=[ \xa0]+[a-zß-öø-ÿ](?![a-z]{0,2}[A-Z]))")
_SENTENCE_START = re.compile(
    r"(?:\A|[.!?]\s)\s*(?:([a-zß-öø-ÿ])(?![a-z]{0,2}[A-Z])|[^\W\d_])"
)

# "Fig. 3. The pump", "§ 4. The tenant" and, within a paragraph, "3. The tenant": the
# number belongs to the rest.
_NUMBERED = re.compile(rf"(?<!\S)\d{{1,3}}(?:\.\d{{1,2}}){{0,3}}\.(?=\s+{CAPITAL})")
_LABEL = re.compile(
    r"(?:(?:\A|\n|[.!?;:][ \xa0]{1,2})"
    r"(?:Fig|Figure|Tab|Table|Abb|Scheme|Art|Article|Artikel|Abschnitt|Section|Clause"
    r"|§)[.,]?["
    r" \xa0]?"
    r"|[.!?;:][ \xa0]{1,2})\Z"
)
_SHORT = re.compile(r"(?:\b\w{1,3}|str|Str)\.[ \xa0]{1,2}\Z")
_REACH = 16  # maximum length of a label before a number, in characters
_PICTURE = re.compile(r"!(?=\[)(?<![^\s\[(]!)")  # in Markdown, also in a link
_REFERENCE = re.compile(r"\.(?=[A-Z]{1,8}\.?\d)(?<=[A-Z\d]\.)")  # "14.CAT.OP.029"
_ELLIPSIS = re.compile(rf"…(?={CLOSING}\s+{OPENING}{CAPITAL})")

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
        r"\b(?:[Gg]em|BGBl|ABl|GVBl|RGBl|BAnz|Buchst|Rdnr|Rz|Tz|Ziff|Halbs|Unterabs"
        r"|UAbs|Fn|Anm|Beschl|Urt|Az|Fa|Tsd|Bekl|Kl"
        r"|Rspr|Abschn|Anl|[Ii]nsb|[Ee]ntspr|[Gg]gf|[Ee]inschl|[Zz]zgl|[Ii]nkl|[Ee]xkl"
        r"|Geb|Gest)\.(?=\s+[\w§(])"
        r"|\b(?:[Dd](?:er|ie|as|en|em|es)|[Zz]u[mr]|[Vv]om|[AaIi]m|[Bb]eim"
        r"|[Jj]ede[rsnm]?)\s\d{1,3}\.(?=\s+\w)"
    ),
    "fr": re.compile(
        r"\b(?:MM?|Drs?|Pr|Mgr|Cie|Cass|civ|crim|chap|éd|apr|av"
        r"|[A-Z]\.[A-Z]\.[A-Z])\.(?=\s+[\w§(])"
        r"|\b(?:art|fig|vol|pp?|t|n|janv|févr|juill|sept|oct|nov"
        r"|déc)\.(?=\s+(?:[A-Z]\b|\d))"
        r"|\b[A-Z]\.(?=-?[A-Z]|\s+[A-Z][a-zé]|\s*\*{0,2}\d)"
    ),
    "it": re.compile(
        r"\b(?:[Dd]ott|[Ss]ig|[Aa]vv|[Ii]ng|[Oo]n|Geom|Rag|Spett|Gent|[Cc]fr|Cass|civ"
        r"|pen|Trib|sez|pagg?|artt?|nn?|capp?|lett|Lgs|voll?"
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


def correct_ends(text: str, language: str) -> str:
    """The text with characters replaced, so that ``sentencex`` finds the right ends.

    Examples
    --------
    >>> correct_ends("See Fig. 4 on p. 9. It sank in 1911.3 Nobody came.", "en")
    'See Fig, 4 on p. 9. It sank in 1911.. Nobody came.'
    """
    text = _BEFORE_NUMBER.sub(_comma_in_abbreviation, text)
    text = _REFERENCE.sub(",", text)
    text = _ELLIPSIS.sub(".", text)
    text = _PICTURE.sub("A", text)
    if language in _LACKING:
        text = _LACKING[language].sub(_comma_for_full_stop, text)
    if language == "en":
        # With another last letter, the word is no abbreviation.
        text = _WORDS.sub(lambda match: f"{match[0][:-2]}q.", text)
        text = _AT_END_BEFORE_OPENING.sub(_exclamation_for_full_stop, text)
    else:
        text = _AT_END.sub(partial(_end_before_word, stop_words(language)), text)
    if language in _WITH_ORDINALS:
        text = _ORDINAL.sub(_comma_for_full_stop, text)
    text = _MEASURE.sub(_word_for_measure, text)
    if _sentences_begin_with_capitals(text):
        text = _SMALL.sub(_comma_unless_stop_word, text)
    text = _NUMBERED.sub(partial(_number_of_clause, set()), text)
    text = _MARKS.sub(lambda match: "." * len(match[0]), text)
    return _NOTE.sub(_full_stops_for_note, text)


def _comma_in_abbreviation(match: re.Match[str]) -> str:
    """A comma after an abbreviation, such as "Fig.", else the full stop."""
    reach = max(0, match.start() - _REACH)
    abbreviation = _ABBREVIATION.search(match.string, reach, match.start())
    if abbreviation is None:
        return "."
    letter_follows = match.string[match.end() + 1 : match.end() + 2].isalpha()
    if abbreviation[0] == "al" and letter_follows:
        return "."
    return ","


def _comma_for_full_stop(match: re.Match[str]) -> str:
    return f"{match[0][:-1]},"


def _exclamation_for_full_stop(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}!"


def _word_for_measure(match: re.Match[str]) -> str:
    """A word in place of a unit of measure, with its full stop."""
    return "q" * (len(match[0]) - 1) + "."


def _end_before_word(first_words: Container[str], match: re.Match[str]) -> str:
    """End a sentence if the next word is one that many sentences begin with."""
    word = match[1]
    if word[0].isupper() and word.lower() in first_words:
        return f"{match[0][:-1]}!"
    return match[0]


def _sentences_begin_with_capitals(text: str) -> bool:
    """True if fewer than half of the sentences begin with a small letter."""
    n_starts = n_small = 0
    for match in _SENTENCE_START.finditer(text):
        n_starts += 1
        n_small += bool(match[1])
    return 2 * n_small < n_starts


def _comma_unless_stop_word(match: re.Match[str]) -> str:
    if match[1].lower() in STOP_WORDS:
        return match[0]
    return _comma_for_full_stop(match)


def _number_of_clause(earlier: set[str], match: re.Match[str]) -> str:
    """The number of a clause, with a comma if it belongs to the text after it.

    ``earlier`` has the numbers before it. A number after a short word, as in "p. 4.
    The", is not that of a clause unless it continues the count.
    """
    reach = max(0, match.start() - _REACH)
    if not _LABEL.search(match.string, reach, match.start()):
        return match[0]
    number = match[0][:-1]
    *parents, last = number.split(".")
    previous = ".".join([*parents, str(int(last) - 1)])
    earlier.add(number)
    if previous in earlier or not _SHORT.search(match.string, reach, match.start()):
        return _comma_for_full_stop(match)
    return match[0]


def _full_stops_for_note(match: re.Match[str]) -> str:
    """The closing marks before the number of a note, and full stops in its place."""
    closing = match[1]
    return closing + "." * (len(match[0]) - len(closing))
