"""Checks of the arguments of baselines."""


def check_whole(least: int = 1, **numbers: object) -> None:
    """Raise ``ValueError`` unless all arguments are whole numbers, at least ``least``.

    Examples
    --------
    >>> from spscanner_rag.baselines.arguments import check_whole
    >>> check_whole(best=0)
    Traceback (most recent call last):
    ValueError: best is 0; expected a whole number of at least 1
    """
    for name, number in numbers.items():
        if type(number) is not int or number < least:
            raise ValueError(
                f"{name} is {number!r}; expected a whole number of at least {least}"
            )
