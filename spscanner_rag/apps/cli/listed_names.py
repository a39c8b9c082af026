"""Names that an option lists, separated by commas."""


def names_in(option: str, value: str) -> list[str]:
    """The names in a comma-separated option.

    ``ValueError`` if one is empty or given twice.
    """
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise ValueError(f"{option}: got {value!r}; expected names separated by commas")
    if len(set(names)) < len(names):
        raise ValueError(f"{option}: got {value!r}, a name twice; expected each once")
    return names
