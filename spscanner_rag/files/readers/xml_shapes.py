"""What the shape of an XML element tells: mixed content, sentences, numbered paths."""

from typing import Final

from spscanner_rag.files.readers.zip_parts import Element, local_name

LONGEST_PATH: Final = 200
"""Characters of a place's path, from its end."""

_FEWEST_SPACES = 7  # of a sentence without its full stop


def numbered_children(element: Element, path: str) -> list[tuple[Element, str]]:
    """Return the children with their paths, in which those of one name have numbers."""
    totals: dict[str, int] = {}
    for child in element:
        name = local_name(child)
        totals[name] = totals.get(name, 0) + 1
    numbers: dict[str, int] = {}
    children: list[tuple[Element, str]] = []
    for child in element:
        name = local_name(child)
        numbers[name] = numbers.get(name, 0) + 1
        number = f"[{numbers[name]}]" if totals[name] > 1 else ""
        children.append((child, f"{path}/{name}{number}"))
    return children


def is_sentence(text: str) -> bool:
    """Return whether a text reads like a sentence rather than like a value."""
    return text.endswith((".", "!", "?", "…")) or text.count(" ") >= _FEWEST_SPACES


def is_mixed(element: Element) -> bool:
    """Return whether text and elements are side by side in an element."""
    if not len(element):
        return False
    if element.text and element.text.strip():
        return True
    return any(child.tail and child.tail.strip() for child in element)
