"""Names of cells and columns of a sheet, as a spreadsheet shows them."""

import re

_LETTERS = 26
_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([1-9]\d{0,6})")


def column_name(column: int) -> str:
    """The letters of a column, counted from 0.

    Examples
    --------
    >>> column_name(0), column_name(27)
    ('A', 'AB')
    """
    letters = ""
    remaining = column + 1
    while remaining:
        remaining, letter = divmod(remaining - 1, _LETTERS)
        letters = chr(ord("A") + letter) + letters
    return letters


def cell_name(row: int, column: int) -> str:
    """The name of a cell, whose row and column count from 0.

    Examples
    --------
    >>> cell_name(11, 3)
    'D12'
    """
    return f"{column_name(column)}{row + 1}"


def cell_of(name: str) -> tuple[int, int] | None:
    """The row and column of a cell, from 0, or None for what names no cell.

    Examples
    --------
    >>> cell_of("D12")
    (11, 3)
    """
    match = _REFERENCE.fullmatch(name)
    if match is None:
        return None
    column = 0
    for letter in match[1]:
        column = column * _LETTERS + ord(letter) - ord("A") + 1
    return int(match[2]) - 1, column - 1
