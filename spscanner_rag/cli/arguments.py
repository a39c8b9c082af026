"""Options that several commands read in the same way."""


def names_in(option: str, value: str) -> list[str]:
    """The names in a comma-separated option.

    Raises
    ------
    ValueError
        For an empty name, or one that is given twice.
    """
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise ValueError(f"{option}: got {value!r}; expected names with a comma between two")
    if len(set(names)) < len(names):
        raise ValueError(f"{option}: got {value!r}, a name twice; expected each once")
    return names
