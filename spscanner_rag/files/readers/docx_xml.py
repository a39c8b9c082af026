"""The elements of Word's XML: names, attributes and properties."""

from functools import lru_cache

from spscanner_rag.files.readers.zip_parts import Element

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
NAMES = {"w": WORD}
STRICT = (  # the same elements in the strict form
    b"http://purl.oclc.org/ooxml/wordprocessingml/main"
)


@lru_cache(256)  # a document has millions of elements, but few names
def word(tag: object) -> str:
    """The name of an element in Word's namespace.

    Empty for others.
    """
    qualified = str(tag)  # lxml gives functions as tags of comments
    prefix = f"{{{WORD}}}"
    return qualified.removeprefix(prefix) if qualified.startswith(prefix) else ""


def attribute(element: Element, name: str, path: str = ".") -> str:
    """The value of a Word attribute of an element, or of one at a path below it.

    Empty if there is none.
    """
    target = None if element is None else element.find(path, NAMES)
    return "" if target is None else str(target.get(f"{{{WORD}}}{name}", ""))


def value(element: Element, path: str = ".") -> str:
    """The value of a property's ``w:val``."""
    return attribute(element, "val", path)


def properties(element: Element, path: str) -> dict[str, Element]:
    """The properties at a path by name.

    They are found in one pass, because a document has hundreds of thousands.
    """
    target = None if element is None else element.find(path, NAMES)
    return {} if target is None else {word(child.tag): child for child in target}


def switched(text: str) -> bool:
    """True unless the text of a switch says that it is off."""
    return text not in ("0", "false", "off", "none")


def is_on(element: Element, path: str, default: bool = False) -> bool:
    """True for a property that is switched on, as one without a value is.

    ``default`` if it is missing.
    """
    switch = None if element is None else element.find(path, NAMES)
    return default if switch is None else switched(attribute(switch, "val"))
