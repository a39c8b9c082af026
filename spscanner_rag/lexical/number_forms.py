"""A question's numbers, measures and dates in the form in which a text writes them.

Models read "6,660" and "6660" as different words, and so "3.5 million" and "3,500,000",
"25 km" and "25km", "4 March 1811" and "1811-03-04".
"""

import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple

from spscanner_rag.lexical.written_forms import (
    POWER_OF,
    WrittenDate,
    dates_of,
    plain_number,
)

MOST_NUMBERS: Final = 8
"""Maximum number of a question's numbers that are looked up."""

MOST_SENTENCES: Final = 200
"""Maximum number of sentences with a number that are looked at."""

SentencesWith = Callable[[str], Iterable[str]]
"""Returns the sentences of a text that have a word of the index."""

_CURRENCIES = (
    "$|us$|usd|dollar|dollars",
    "€|eur|euro|euros",
    "£|gbp",
    "¥|jpy|yen",
    "₹|inr|rs|rupee|rupees",
    "chf",
)
_MEASURES = (
    "%|percent|per cent|pct|prozent|pour cent|por ciento|per cento|procent",
    "°c|° c|degrees celsius|degree celsius|celsius|grad celsius",
    "°f|° f|degrees fahrenheit|degree fahrenheit|fahrenheit",
    "km|kms|kilometre|kilometres|kilometer|kilometers",
    "m|metre|metres|meter|meters",
    "cm|centimetre|centimetres|centimeter|centimeters|zentimeter",
    "mm|millimetre|millimetres|millimeter|millimeters",
    "mi|mile|miles",
    "ft|foot|feet",
    "inch|inches",
    "yd|yard|yards",
    "km2|sq km|square kilometres|square kilometers|quadratkilometer",
    "m2|sq m|square metres|square meters|quadratmeter",
    "ha|hectare|hectares|hektar",
    "kg|kgs|kilogram|kilograms|kilogramme|kilogrammes|kilogramm|kilo|kilos",
    "g|gram|grams|gramme|grammes|gramm",
    "mg|milligram|milligrams|milligramm",
    "t|tonne|tonnes|ton|tons|tonnen",
    "lb|lbs|pound|pounds",
    "oz|ounce|ounces",
    "l|litre|litres|liter|liters",
    "ml|millilitre|millilitres|milliliter|milliliters",
    "h|hr|hrs|hour|hours|stunde|stunden",
    "min|mins|minute|minutes|minuten",
    "s|sec|secs|second|seconds|sekunde|sekunden",
    "ms|millisecond|milliseconds|millisekunden",
    "km/h|kmh|kph|kilometres per hour|kilometers per hour",
    "mph|miles per hour",
    "kw|kilowatt|kilowatts",
    "mw|megawatt|megawatts",
    "kwh|kilowatt hours|kilowatt-hours|kilowattstunden",
    "kb|kilobyte|kilobytes",
    "mb|megabyte|megabytes",
    "gb|gigabyte|gigabytes",
    "tb|terabyte|terabytes",
)
_UNIT_OF = {
    name: names.split("|")[0]
    for names in (*_CURRENCIES, *_MEASURES)
    for name in names.split("|")
}


def _one_of(names: Iterable[str]) -> str:
    """A pattern of names, the longest first."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


_BEFORE = _one_of(name for names in _CURRENCIES for name in names.split("|"))
_NUMBER = r"\d{1,3}(?:[,.' ]\d{3})+(?:[.,]\d{1,4})?|\d{1,15}(?:[.,]\d{1,15}){0,5}"
_QUANTITY = re.compile(
    rf"(?:(?<!\w)(?P<before>{_BEFORE}) ?)?(?<![\w.,'])(?P<number>{_NUMBER})"
    rf"(?:[ -]?(?P<power>{_one_of(POWER_OF)})(?!\w))?"
    rf"(?:[ -]?(?P<after>{_one_of(_UNIT_OF)})(?!\w))?"
    r"(?!\w|[.,]\d)",
    re.IGNORECASE,
)
_METRES = "m"  # or millions
_DIGIT = re.compile(r"\d")
_MOST_DIGITS = 18
_SAME_IN_ALL_FORMS = 1_000  # numbers below this without a measure


class Quantity(NamedTuple):
    """A number in a text, with its magnitude, and its measure or currency."""

    start: int
    end: int
    number_start: int
    number_end: int  # of its magnitude, if it has one
    value: Decimal
    unit: str  # the first of its names; "" without one

    @property
    def word(self) -> str:
        """A word that the index has for a text with such a number."""
        return f"{int(self.value)}"

    @property
    def may_differ(self) -> bool:
        """Whether there is another way to write it."""
        is_small = self.value < _SAME_IN_ALL_FORMS and self.value % 1 == 0
        return bool(self.unit) or not is_small


class _Form(NamedTuple):
    """What stands in a question, and what is read in its place."""

    start: int
    end: int
    text: str


def quantities_of(text: str, *, comma_is_decimal: bool = False) -> Iterator[Quantity]:
    """Yield the numbers of a folded text, with their measures, in their order.

    "25 m" is 25 metres and 25 million.

    Examples
    --------
    >>> for quantity in quantities_of("$3.5m for 25km"):
    ...     print(f"{quantity.value:f}", quantity.unit)
    3500000 $
    25 km
    """
    for match in _QUANTITY.finditer(text):
        number = plain_number(match["number"], comma_is_decimal=comma_is_decimal)
        if number is None:
            continue
        power_name = (match["power"] or "").lower()
        unit = _UNIT_OF.get((match["after"] or match["before"] or "").lower(), "")
        number_end = match.end("power") if power_name else match.end("number")
        value = Decimal(number).scaleb(POWER_OF.get(power_name, 0)).normalize()
        number_start = match.start("number")
        if value.adjusted() < _MOST_DIGITS:
            yield Quantity(*match.span(), number_start, number_end, value, unit)
        if power_name == _METRES and not unit:
            value = Decimal(number).normalize()
            number_end = match.end("number")
            yield Quantity(*match.span(), number_start, number_end, value, _METRES)


def numbers_as_written(
    question: str,
    sentences_with: SentencesWith,
    *,
    asked_with_comma: bool = False,
    written_with_comma: bool = False,
) -> str:
    """Return a folded question with its numbers as the sentences write them.

    A number that they have as it was asked, or not at all, stays.

    Parameters
    ----------
    question : str
        The question.
    sentences_with : callable
        Returns the sentences that have a word of the index.
    asked_with_comma, written_with_comma : bool, default False
        Whether the question and the text write 1,5 for one and a half. A number of the
        question that is not in the text is also read in the other way.

    Examples
    --------
    >>> def sentences_with(word):
    ...     return ["Ann paid 6660 marks for 25km."]
    >>> numbers_as_written("Who paid 6,660 marks?", sentences_with)
    'Who paid 6660 marks?'
    >>> numbers_as_written("Who sailed 25 kilometres?", sentences_with)
    'Who sailed 25km?'
    """
    if not _DIGIT.search(question):
        return question
    dates = list(dates_of(question))
    forms = _dates_as_written(question, dates, sentences_with)
    spans = [range(date.start, date.end) for date in dates]  # whose form is known
    for comma in (asked_with_comma, not asked_with_comma):
        asked_quantities = quantities_of(question, comma_is_decimal=comma)
        for asked in islice(asked_quantities, MOST_NUMBERS):
            is_known = any(asked.number_start in span for span in spans)
            if is_known or not asked.may_differ:
                continue
            form = _as_written(question, asked, sentences_with, written_with_comma)
            if form is not None:
                spans.append(range(asked.start, asked.end))
                forms.append(form)
    return _replaced(question, forms)


def _replaced(question: str, forms: Iterable[_Form]) -> str:
    pieces = []
    position = 0
    for form in sorted(forms):
        pieces += [question[position : form.start], form.text]
        position = form.end
    return "".join([*pieces, question[position:]])


def _as_written(
    question: str,
    asked: Quantity,
    sentences_with: SentencesWith,
    written_with_comma: bool,
) -> _Form | None:
    """A quantity as the first sentence writes it that has it.

    It is as it was asked if one has that, and None if the text does not have it.
    """
    as_asked = question[asked.start : asked.end]
    number_form = None
    whole_form = None
    for sentence in islice(sentences_with(asked.word), MOST_SENTENCES):
        for quantity in quantities_of(sentence, comma_is_decimal=written_with_comma):
            if quantity.value != asked.value:
                continue
            number = sentence[quantity.number_start : quantity.number_end]
            if number_form is None:
                number_form = _Form(asked.number_start, asked.number_end, number)
            if quantity.unit != asked.unit:
                continue
            whole = sentence[quantity.start : quantity.end]
            if whole == as_asked:
                return _Form(asked.start, asked.end, whole)
            if whole_form is None:
                whole_form = _Form(asked.start, asked.end, whole)
    return whole_form or number_form


def _dates_as_written(
    question: str, dates: Iterable[WrittenDate], sentences_with: SentencesWith
) -> list[_Form]:
    """The dates that the text has in another form alone."""
    forms = []
    for date in islice(dates, MOST_NUMBERS):
        as_asked = question[date.start : date.end]
        written: dict[str, str] = {}  # by the reading, as the first sentence has it
        for reading in {date.day_first, date.month_first} - {""}:
            for form in _forms_of_date(reading, sentences_with):
                written.setdefault(reading, form)
                if form == as_asked:
                    written[reading] = as_asked
        if len(written) == 1 and as_asked not in written.values():
            forms.append(_Form(date.start, date.end, *written.values()))
    return forms


def _forms_of_date(reading: str, sentences_with: SentencesWith) -> Iterator[str]:
    for sentence in islice(sentences_with(reading), MOST_SENTENCES):
        for date in dates_of(sentence):
            if reading in (date.day_first, date.month_first):
                yield sentence[date.start : date.end]
