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
    if not qualified.startswith(prefix):
        return ""
    return qualified.removeprefix(prefix)


def attribute(element: Element, name: str, path: str = ".") -> str:
    """The value of a Word attribute of an element, or of one at a path below it.

    Empty if there is none.
    """
    target = _found(element, path)
    if target is None:
        return ""
    return str(target.get(f"{{{WORD}}}{name}", ""))


def _found(element: Element, path: str) -> Element:
    """The element at a path below another, or None if either is missing."""
    if element is None:
        return None
    return element.find(path, NAMES)


def value(element: Element, path: str = ".") -> str:
    """The value of a property's ``w:val``."""
    return attribute(element, "val", path)


def properties(element: Element, path: str) -> dict[str, Element]:
    """The properties at a path by name.

    They are found in one pass, because a document has hundreds of thousands.
    """
    target = _found(element, path)
    if target is None:
        return {}
    return {word(child.tag): child for child in target}


def switched(text: str) -> bool:
    """True unless the text of a switch says that it is off."""
    return text not in ("0", "false", "off", "none")


def is_on(element: Element, path: str, default: bool = False) -> bool:
    """True for a property that is switched on, as one without a value is.

    ``default`` if it is missing.
    """
    switch = _found(element, path)
    if switch is None:
        return default
    return switched(attribute(switch, "val"))
