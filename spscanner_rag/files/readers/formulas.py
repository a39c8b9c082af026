"""Formulas as text: Word's OMML and the MathML of web pages in one line, such as "x^2 = (a+b)/2"."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

_SPACE = re.compile(r"\s+")
_INVISIBLE = str.maketrans(
    "", "", "\u2061\u2062\u2063\u2064"
)  # function application, invisible times and commas
_DEEPEST = 100  # elements within each other that are written with their structure
# Elements by their names in both languages; all others are written as they follow each other.
_FRACTIONS, _ROOTS = {"f", "mfrac"}, {"rad", "msqrt", "mroot"}
_BELOW, _ABOVE = {"ssub", "msub", "munder", "limlow"}, {"ssup", "msup", "mover", "limupp"}
_BOTH = {"ssubsup", "msubsup", "munderover"}
_OF_ROWS = {"m", "mtable", "eqarr"}
# The same formula in another language; of Word, what was deleted, codes of fields, and properties, which end so.
_UNREAD = ("annotation", "annotation-xml", "}del", "}moveFrom", "}delText", "}instrText", "Pr")

Element = Any
"""Of lxml or of the standard library."""


def formula_text(element: Element) -> str:
    """A formula on one line; its annotation where there is nothing else."""
    annotations = (each.text or "" for each in element.iterfind(".//{*}annotation"))
    return " ".join("".join(_parts(element, 1)).split()) or " ".join("".join(annotations).split())


def _parts(element: Element, depth: int) -> Iterator[str]:
    yield _plain(element.text)
    for child in element:
        name = child.tag.rpartition("}")[2].lower()
        if not child.tag.endswith(_UNREAD):
            parts = _parts(child, depth + 1) if depth < _DEEPEST else map(_plain, child.itertext())
            if filled := [part for part in parts if part.strip()]:
                yield _written(name, filled, child) if depth < _DEEPEST else "".join(filled)
        yield _plain(child.tail)


def _plain(text: str | None) -> str:
    return _SPACE.sub(" ", (text or "").translate(_INVISIBLE))


def _sign(element: Element, name: str, default: str) -> str:
    """The character that the properties of an operator or of brackets name (OMML)."""
    found = element.find(f"*/{{*}}{name}")
    if found is None:
        return default
    return next((text for key, text in found.items() if key.endswith("val")), "")[:1]


def _written(name: str, parts: Sequence[str], element: Element) -> str:
    first, *rest = parts
    if name in _FRACTIONS and len(parts) == 2:
        return f"{_grouped(first)}/{_grouped(rest[0])}"
    if name in _ROOTS:
        degree, radicand = ("", "".join(parts)) if name == "msqrt" or len(parts) < 2 else parts[:2]
        degree, radicand = (radicand, degree) if name == "mroot" and degree else (degree, radicand)
        return f"{degree}√{_grouped(radicand)}"
    if name in _BELOW and len(parts) == 2:
        return f"{first}_{_grouped(rest[0])}"
    if name in _ABOVE and len(parts) == 2:
        return f"{_grouped(first)}^{_grouped(rest[0])}"
    if name in _BOTH and len(parts) == 3:
        after = " " if name == "munderover" else ""
        return f"{first}_{_grouped(rest[0])}^{_grouped(rest[1])}{after}"
    if name == "spre" and len(parts) == 3:
        return f"{rest[1]}_{_grouped(first)}^{_grouped(rest[0])}"
    if name == "mfenced":
        return f"{element.get('open', '(')[:1]}{', '.join(parts)}{element.get('close', ')')[:1]}"
    if name == "d":
        between = _sign(element, "sepChr", "") or "|"
        return f"{_sign(element, 'begChr', '(')}{between.join(parts)}{_sign(element, 'endChr', ')')}"
    if name == "nary":
        limits = "".join(f"{mark}{_grouped(part)}" for mark, part in zip("_^", parts[:-1], strict=False))
        return f"{_sign(element, 'chr', '') or '∫'}{limits} {parts[-1]}"
    if name in ("acc", "bar"):
        return "".join(parts) + ("\u0305" if name == "bar" else _sign(element, "chr", "") or "\u0302")
    if name in ("func", "mtd", "mtr", "mr") or name in _OF_ROWS:
        return ("; " if name in _OF_ROWS else " ").join(parts)
    return "".join(parts)


def _grouped(part: str) -> str:
    """A part in brackets, unless it is one number or word."""
    return part if part.replace(".", "", 1).isalnum() or (part[0] == "(" and part[-1] == ")") else f"({part})"
