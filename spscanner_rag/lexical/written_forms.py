r"""Numbers, dates and measures in one form, however they are written.

"4,194" and "4194" are the same number, "4 March 1811" and "1811-03-04" the same day,
and "5km" is "5 km". `words_of` yields the words of a text or a query with these forms:

- A number with marks between its groups of digits is one word of digits. With spaces
  between them, it is a further word, since they may be several numbers.
- A number with its magnitude, as in "1.5 million", has its value as a further word.
- A measure without a blank is two words.
- A date has itself and its month as further words: "1811-03-04" and "1811-03".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

DECIMAL_COMMA: Final = frozenset(
    "german french spanish italian portuguese dutch swedish russian turkish vietnamese"
    " polish czech danish norwegian finnish romanian indonesian catalan greek"
    " ukrainian".split()
)
"""Languages that write 4.194 for four thousand, and 1,5 for one and a half."""

_DIGIT = re.compile(r"\d")
_FOUR_DIGITS = re.compile(r"\d{4}")
_AMBIGUOUS = re.compile(r"\d[.,]\d{3}(?!\d)")

_FREE = r"(?<![\w.,'])"
_GROUPED_ANYWHERE = (
    rf"{_FREE}(?:[1-9]\d{{0,2}}(?:'\d{{3}})+"  # 4'194
    r"|[1-9]\d{0,2}(?:\.\d{3}){2}(?!\.)|[1-9]\d{0,2}(?:,\d{3}){2,9}"  # 1.234.567
    r"|[1-9]\d?(?:,\d{2})+,\d{3}"  # 12,34,567 in India
)
_GROUPS_END = r"(?![\d']|[,.]\d{3})"
_GROUPED = {
    False: re.compile(rf"{_GROUPED_ANYWHERE}|[1-9]\d{{0,2}},\d{{3}}){_GROUPS_END}"),
    True: re.compile(rf"{_GROUPED_ANYWHERE}|[1-9]\d{{0,2}}\.\d{{3}}){_GROUPS_END}"),
}
_SPACED = re.compile(
    r"(?<![\w.,'-])(?<!\d )[1-9]\d{0,2}(?: \d{3}){1,4}(?![\d_'-]|[.,]\d{3}| \d)"
)
_MARKS = re.compile(r"[.,' ]")

_POWERS = {
    3: "k thousand thousands tsd tausend mille mil mila duizend тыс тысяч тысячи",
    5: "lakh lakhs",
    6: "m mn mln mio million millions millionen millones millón milhões milhão milioni"
    " milione miljoen miljoner miljon млн миллион миллиона миллионов",
    7: "crore crores",
    9: "bn bln billion billions mrd mld milliard milliards milliarde milliarden"
    " miliardi miliardo miljard miljarder млрд миллиард миллиарда миллиардов",
    12: "tn trillion trillions",
}
POWER_OF: Final = {
    name: power for power, names in _POWERS.items() for name in names.split()
}
"""The power of ten of each magnitude, in small letters."""

_LONG_SCALE = frozenset(("billion", "billions"))  # 10^12 where commas are decimal
_MAGNITUDE = re.compile(
    rf"(?<![\w.,])(\d{{1,15}}(?:[.,]\d{{1,15}}){{0,5}})[ -]?({'|'.join(POWER_OF)})\b",
    re.IGNORECASE,
)
_MOST_DIGITS = 18

_MEASURES = (
    "km cm mm nm dm ha km² m² cm² mm² m³ cm³ km2 m2 cm2 m3 cm3 ft in yd mi nmi kg mg µg"
    " ug lb lbs oz ml cl dl hl gal hr hrs min mins sec secs ms ns wk yr yrs kw mw gw wh"
    " kwh mwh gwh kv mv ma hz khz mhz ghz kj pa kpa mpa hpa bar mbar psi kb mb gb tb pb"
    " kib mib gib bit bits mph kmh kph rpm px pt dpi fps mol kcal cal ppm db am pm usd"
    " eur gbp chf mn bn mio mrd mln млн кг км"
)
# Of one letter only these: "3D", "5G" and "1990s" are words.
_MEASURE = re.compile(
    r"(?<!\w)"
    rf"(?:(\d+)((?i:{'|'.join(map(re.escape, _MEASURES.split()))})|[mlgh])"
    r"|(\d{1,3})(s))(?!\w)"
)

_MONTHS = (
    "january jan januar jänner janvier enero ene gennaio janeiro januari января",
    "february feb februar février fevrier febrero febbraio fevereiro februari февраля",
    "march mar märz mars marzo março maart марта",
    "april apr avril abril aprile апреля",
    "may mai mayo maggio maio mei maj мая",
    "june jun juni juin junio giugno junho июня",
    "july jul juli juillet julio luglio julho июля",
    "august aug août aout agosto augustus augusti августа",
    "september sep sept septembre septiembre settembre setembro сентября",
    "october oct oktober okt octobre octubre ottobre outubro октября",
    "november nov novembre noviembre novembro ноября",
    "december dec dezember dez décembre diciembre dicembre dezembro декабря",
)
_MONTH_OF = {
    name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()
}
_MONTH = rf"(?P<name>{'|'.join(_MONTH_OF)})\b\.?"
_DAY = r"(?P<day>\d{1,2})"
_YEAR = r"(?P<year>\d{4})(?![\w]|[-/.]\d)"
_DATES = tuple(
    re.compile(rf"(?<![\w.,/-]){form}", re.IGNORECASE)
    for form in (
        rf"{_DAY}(?:st|nd|rd|th|er|\.|º)?[ -](?:of |de |di |day of )?{_MONTH}"
        rf",?[ -](?:de |of )?{_YEAR}",
        rf"{_MONTH}(?: {_DAY}(?:st|nd|rd|th)?)?,?[ -](?:de |of )?{_YEAR}",
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{2})(?P=mark)(?P<day>\d{2})"
        r"(?![\d]|[-/.]\d)",
        rf"{_DAY}\. ?(?P<month>\d{{1,2}})\. ?{_YEAR}",
        r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})日)?",
    )
)
_SLASHED = re.compile(r"(?<![\w.,/-])(\d{1,2})([/-])(\d{1,2})\2(\d{4})(?![\w]|[-/.]\d)")


class WrittenForm(NamedTuple):
    """A word for a stretch of a text that is written in one of several ways."""

    start: int
    end: int
    word: str
    replaces: bool  # the words within the stretch, else it is a further word


class WrittenDate(NamedTuple):
    """A date in a text, as "1811-03-04" or "1811-03".

    For 4/3/1811 there are two readings; the one that is impossible is "".
    """

    start: int
    end: int
    day_first: str
    month_first: str


def depends_on_language(text: str) -> bool:
    """True if a text has numbers that other languages than English read otherwise.

    Examples
    --------
    >>> depends_on_language("4.194 Mark"), depends_on_language("4194 Mark")
    (True, False)
    """
    return _AMBIGUOUS.search(text) is not None


def words_of(
    text: str, pattern: re.Pattern[str], *, comma_is_decimal: bool = False
) -> Iterable[tuple[int, int, str]]:
    """Start, end and the word for each word of a text, in order of the starts.

    Parameters
    ----------
    text : str
        In its folded form.
    pattern : re.Pattern
        Matches each word; the word is its last group that matched, if it has groups.
    comma_is_decimal : bool, default False
        Whether the text writes 1,5 for one and a half.

    Examples
    --------
    >>> words = words_of("She paid 4,194 marks for 5km.", re.compile("[a-z0-9]+"))
    >>> [word for start, end, word in words]
    ['he', 'paid', '4194', 'marks', 'for', '5', 'km']
    """
    words = []
    for match in pattern.finditer(text):
        group = match.lastindex or 0
        words.append((*match.span(group), match[group]))
    if not _DIGIT.search(text):
        return words
    forms = sorted(_written_forms(text, comma_is_decimal), key=_order)
    return _with_forms(words, forms) if forms else words


def _with_forms(
    words: Iterable[tuple[int, int, str]], forms: Sequence[WrittenForm]
) -> Iterator[tuple[int, int, str]]:
    """The words with the forms in their places, in order of the starts."""
    next_form = 0
    replaced_to = 0
    for start, end, word in words:
        while next_form < len(forms) and forms[next_form].start <= start:
            form = forms[next_form]
            next_form += 1
            if form.start < replaced_to and form.replaces:
                continue
            if form.replaces:
                replaced_to = form.end
            yield form.start, form.end, form.word
        if start >= replaced_to:
            yield start, end, word
    for form in forms[next_form:]:
        yield form.start, form.end, form.word


def _order(form: WrittenForm) -> tuple[int, bool, int]:
    """Further words come before those that they stand beside, longer ones first."""
    return form.start, form.replaces, -form.end


def _written_forms(text: str, comma_is_decimal: bool) -> Iterator[WrittenForm]:
    for match in _GROUPED[comma_is_decimal].finditer(text):
        yield WrittenForm(*match.span(), _MARKS.sub("", match[0]), True)
    for match in _SPACED.finditer(text):
        yield WrittenForm(*match.span(), _MARKS.sub("", match[0]), False)
    for match in _MAGNITUDE.finditer(text):
        value = _value(match[1], match[2].lower(), comma_is_decimal)
        if value:
            yield WrittenForm(*match.span(), value, False)
    for match in _MEASURE.finditer(text):
        amount, measure = (1, 2) if match[1] else (3, 4)
        yield WrittenForm(*match.span(amount), match[amount], True)
        yield WrittenForm(*match.span(measure), match[measure], True)
    if _FOUR_DIGITS.search(text):  # a year
        yield from _forms_of_dates(text)


def _value(number: str, magnitude: str, comma_is_decimal: bool) -> str:
    """The digits of a number with its magnitude, empty if it is not a whole number."""
    plain = plain_number(number, comma_is_decimal=comma_is_decimal)
    if plain is None:
        return ""
    power = POWER_OF[magnitude]
    if magnitude in _LONG_SCALE and comma_is_decimal:
        power = 12
    value = Decimal(plain).scaleb(power)
    is_whole = value == value.to_integral_value()
    digits = f"{value:.0f}"
    return digits if is_whole and len(digits) <= _MOST_DIGITS else ""


def plain_number(number: str, *, comma_is_decimal: bool = False) -> str | None:
    """Digits with a point before decimals, for a number with any marks.

    None if the marks do not fit a number.

    Examples
    --------
    >>> plain_number("1,234.50"), plain_number("1.234,50"), plain_number("5.3.2")
    ('1234.50', '1234.50', None)
    >>> plain_number("4.194"), plain_number("4.194", comma_is_decimal=True)
    ('4.194', '4194')
    """
    if not number.isascii():
        return None
    first, *groups = _MARKS.split(number)
    marks = _MARKS.findall(number)
    if not marks:
        return number
    last_mark = marks[-1]
    is_decimal = last_mark in ".," and marks.count(last_mark) == 1
    if len(marks) == 1 and is_decimal and _is_group(first, groups[0]):
        is_decimal = (last_mark == ",") == comma_is_decimal
    decimals = f".{groups.pop()}" if is_decimal else ""
    if not _are_groups(groups):
        return None
    return "".join([first, *groups, decimals])


def _is_group(first: str, group: str) -> bool:
    """Whether digits may be the thousands before a group of three."""
    return len(group) == 3 and len(first) <= 3 and not first.startswith("0")


def _are_groups(groups: Sequence[str]) -> bool:
    """Whether all have three digits, or all but the last two, as in India."""
    if not groups:
        return True
    lengths = {len(group) for group in groups[:-1]}
    return len(groups[-1]) == 3 and (lengths <= {3} or lengths == {2})


def dates_of(text: str) -> Iterator[WrittenDate]:
    """The dates of a text that have a year and a month, in no particular order.

    Examples
    --------
    >>> [date.day_first for date in dates_of("From 4 March 1811 to 5/3/1811")]
    ['1811-03-04', '1811-03-05']
    """
    date_ends: set[int] = set()  # ends of dates, since "4 March 1811" also has a month
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if match.end() in date_ends:
                continue
            date_ends.add(match.end())
            groups = match.groupdict()
            name = groups.get("name")
            month = _MONTH_OF[name.lower()] if name else int(groups["month"])
            day = int(groups.get("day") or 0)
            date = _digits_of_date(int(groups["year"]), month, day)
            if date:
                yield WrittenDate(*match.span(), date, date)
    for match in _SLASHED.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        day_first = _digits_of_date(year, second, first)
        month_first = _digits_of_date(year, first, second)
        if day_first or month_first:
            yield WrittenDate(*match.span(), day_first, month_first)


def _forms_of_dates(text: str) -> Iterator[WrittenForm]:
    for date in dates_of(text):
        readings = {date.day_first, date.month_first} - {""}
        for reading in sorted(readings):
            if len(reading) > len("1811-03"):
                yield WrittenForm(date.start, date.end, reading, False)
            yield WrittenForm(date.start, date.end, reading[: len("1811-03")], False)


def _digits_of_date(year: int, month: int, day: int) -> str:
    """A date as "1811-03-04" or, if the day is 0, "1811-03"; "" if there is none."""
    if not (1 <= month <= 12 and 0 <= day <= 31):
        return ""
    digits = f"{year:04}-{month:02}"
    return f"{digits}-{day:02}" if day else digits
