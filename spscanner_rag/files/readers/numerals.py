"""Numbers as lists write them: letters, Roman numerals, words."""

_ROMAN = [(1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")]
_ROMAN += [(10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]
_CARDINALS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")  # noqa: RUF001
_MOST_LETTERS = 30  # of one number; the larger ones are digits


def whole_number(text: str, most: int, default: int = 0) -> int:
    """The number that an attribute of a file says, no larger than ``most``; ``default`` if it says none."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal()):
        return default
    return min(int(digits), most) if len(digits) < 10 else most


def roman(number: int) -> str:
    """As in "iv"; digits outside 1 to 3,999."""
    if not 0 < number < 4000:
        return str(number)
    found = ""
    for value, letters in _ROMAN:
        found += letters * (number // value)
        number %= value
    return found


def letters(number: int, *, repeated: bool) -> str:
    """As in "c". After "z" comes "aa", and then "bb" where letters are ``repeated`` (Word), else "ab" (HTML)."""
    if not 0 < number <= 26 * _MOST_LETTERS:
        return str(number)
    turn, letter = divmod(number - 1, 26)
    if repeated:
        return chr(ord("a") + letter) * (turn + 1)
    return (letters(turn, repeated=False) if turn else "") + chr(ord("a") + letter)


def numeral(number: int, form: str, *, repeated: bool = False) -> str:
    """A number in the form of a list's first: 1, 01, a, A, i or I; see `letters`."""
    match form:
        case "a" | "A":
            found = letters(number, repeated=repeated)
        case "i" | "I":
            found = roman(number)
        case "01":
            found = f"{number:02}"
        case _:
            found = str(number)
    return found.upper() if form.isupper() else found


def cardinal(number: int) -> str:
    """As in "twenty"; digits after that."""
    return _CARDINALS[number - 1] if 0 < number <= len(_CARDINALS) else str(number)


def ordinal(number: int) -> str:
    """As in "21st"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def ordinal_word(number: int) -> str:
    """As in "twentieth"; as `ordinal` after that."""
    return _ORDINALS[number - 1] if 0 < number <= len(_ORDINALS) else ordinal(number)
