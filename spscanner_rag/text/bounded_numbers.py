"""Checks that the numbers of a record are numbers, and not absurdly large."""

from dataclasses import fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def check_numbers(record: "DataclassInstance", key: str, largest: float) -> None:
    """Refuse a dataclass with a field that is no number, or a larger one.

    Parameters
    ----------
    record : dataclass
        All its fields are numbers.
    key : str
        Its place in a file, for the message.
    largest : float
        The largest number, of either sign.

    Raises
    ------
    ValueError
        For the first such field, by its name.
    """
    for field in fields(record):
        value = getattr(record, field.name)
        is_number = type(value) in (int, float)
        if not is_number or not -largest <= value <= largest:
            raise ValueError(
                f"{key}.{field.name} is {value!r:.60}; expected a number of at most"
                f" {largest:,.0f}"
            )
