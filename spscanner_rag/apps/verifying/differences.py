"""What a quote says otherwise than its source, and how grave each difference is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import regex

DifferenceKind = Literal[
    "number",
    "negation",
    "word",
    "added",
    "left out",
    "order",
    "editorial",
    "typography",
]
GRAVE: Final = frozenset(("number", "negation", "word", "added", "left out", "order"))
"""The kinds that make a quote an altered one. An editorial difference is marked in the
quote, with an ellipsis or with square brackets; typography changes no word."""

_NEGATIONS = frozenset(
    "no not never none nothing nobody nowhere neither nor without cannot nt hardly"
    " scarcely barely unless except fails failed lacks lacking"
    " nicht kein keine keinen keinem keiner keines nie niemals nichts niemand ohne"
    " ne pas jamais aucun aucune rien personne sans"
    " nunca jamás nada nadie ningún ninguno ninguna sin"
    " non mai nessun nessuno nessuna niente senza não nem niet geen nooit"
    " не нет никогда ничего никто без 不 没 沒 無 无 非 未".split()
)
_PREFIXES = tuple("un in im ir il dis non mis".split())
_SUFFIXES = (("ful", "less"),)
_NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen"
        " fourteen fifteen sixteen seventeen eighteen nineteen".split()
    )
}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBER_WORDS |= {word: 10 * place for place, word in enumerate(_TENS, 2)}
_MAGNITUDES = frozenset(
    "hundred thousand million billion trillion dozen half third quarter twice thrice"
    " once double triple first second fourth fifth sixth seventh eighth ninth tenth"
    " hundreds thousands millions billions dozens halves thirds quarters".split()
)
_SIGNS = regex.compile(r"[%‰<>≤≥±\p{Sc}\p{No}]")


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where a quote and its source differ.

    Attributes
    ----------
    kind : str
        "number", "negation" or "word" for what was changed; "added" or "left out"
        without a mark; "order" for parts that the source has in another order;
        "editorial" for what the quote marks with an ellipsis or square brackets;
        "typography" for the same words with other marks or capitals.
    quoted, source : str
        The words of the quote and those of the source; empty if one has none.

    Examples
    --------
    >>> print(Difference("number", "1904", "1906"))
    number: "1904" for "1906"
    """

    kind: DifferenceKind
    quoted: str
    source: str

    def __str__(self) -> str:
        quoted = f'"{self.quoted}"'
        source = f'"{self.source}"'
        if not self.source:
            return f"{self.kind}: {quoted} is not in the source"
        if not self.quoted:
            return f"{self.kind}: {source} of the source is missing"
        return f"{self.kind}: {quoted} for {source}"


def kind_of(quoted: Sequence[str], source: Sequence[str]) -> DifferenceKind | None:
    """The kind of a difference between forms of words.

    None if they are the same written otherwise, such as "twelve" and "12".

    Examples
    --------
    >>> kind_of(["1904"], ["1906"]), kind_of([], ["not"]), kind_of(["12"], ["twelve"])
    ('number', 'negation', None)
    >>> kind_of(["steamers"], ["steamer"]), kind_of(["possible"], ["impossible"])
    ('word', 'negation')
    """
    if "".join(quoted) == "".join(source) or _values(quoted) == _values(source) != []:
        return None
    if _negates(quoted, source):
        return "negation"
    if _is_about_numbers(quoted) or _is_about_numbers(source):
        return "number"
    if not source:
        return "added"
    return "word" if quoted else "left out"


def is_negation(form: str) -> bool:
    """Whether a word denies by itself, such as "not" or "couldn't"."""
    return form in _NEGATIONS or (form.endswith("nt") and form[:-2] in _AUXILIARIES)


_AUXILIARIES = frozenset(
    "ca could do does did is are was were wo would should has have had must need might"
    " ai sha".split()
)


def _negates(quoted: Sequence[str], source: Sequence[str]) -> bool:
    """Whether one side denies what the other says."""
    if sum(map(is_negation, quoted)) != sum(map(is_negation, source)):
        return True
    if len(quoted) != 1 or len(source) != 1:
        return False
    shorter, longer = sorted((quoted[0], source[0]), key=len)
    if len(shorter) > 3 and longer in [prefix + shorter for prefix in _PREFIXES]:
        return True
    for ending, other_ending in _SUFFIXES:
        stems = {quoted[0].removesuffix(ending), quoted[0].removesuffix(other_ending)}
        if {
            source[0].removesuffix(ending),
            source[0].removesuffix(other_ending),
        } & stems:
            return quoted[0] != source[0]
    return False


def _is_about_numbers(forms: Sequence[str]) -> bool:
    return any(map(is_number_form, forms))


def is_number_form(form: str) -> bool:
    """Whether a word is a number, in digits or in words, or a sign beside one."""
    if form[:1].isdigit() or form[:2].strip("-").isdigit() or _SIGNS.match(form):
        return True
    return form in _MAGNITUDES or number_value(form) is not None


def number_value(form: str) -> str | None:
    """The digits of a number below 100 in words, or of one in digits.

    Else None.

    Examples
    --------
    >>> number_value("sixtyeight"), number_value("1906"), number_value("oak")
    ('68', '1906', None)
    """
    if form.isdigit():
        return form
    if form in _NUMBER_WORDS:
        return str(_NUMBER_WORDS[form])
    for ten in _TENS:
        ones = _NUMBER_WORDS.get(form.removeprefix(ten), 0)
        if form.startswith(ten) and 1 <= ones <= 9:
            return str(_NUMBER_WORDS[ten] + ones)
    return None


def _values(forms: Sequence[str]) -> list[str]:
    """The numbers of words that are nothing but numbers, else nothing."""
    values = []
    for form in forms:
        value = number_value(form)
        if value is None:
            return []
        values.append(value)
    return values
