"""The markers of settings on the page of an evaluation: colours and shapes."""

from collections.abc import Sequence
from typing import NamedTuple

from spscanner_rag.apps.pages.html_page import short_labels
from spscanner_rag.baselines.settings import Setting

COLOURS = 8  # classes c1 to c8 of page.css

SHAPES = {
    "sentence": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "chunk": "M-4-4h8v8h-8z",
    "passage": "M0-5.6 5.6 0 0 5.6-5.6 0z",
    "document": "M0-4.8 4.8 4-4.8 4z",
}
"""Outlines of the markers: a circle, a square, a diamond and a triangle."""


class Marker(NamedTuple):
    """The marker of a setting everywhere on the page.

    It has a colour, a CSS class, for its retriever, and a shape, an SVG path, for its
    unit. ``label`` is short, ``name`` the whole label, and ``hollow`` is true for a
    variant of a setting.
    """

    label: str
    name: str
    colour: str
    shape: str
    hollow: bool


def markers_of(settings: Sequence[Setting]) -> list[Marker]:
    """The marker of each setting.

    A retriever has one colour, whatever its unit and variants.
    """
    labels = short_labels([setting.label for setting in settings])
    retrievers: list[str] = []
    markers = []
    for label, setting in zip(labels, settings, strict=True):
        if setting.retriever not in retrievers:
            retrievers.append(setting.retriever)
        number = retrievers.index(setting.retriever) % COLOURS + 1
        shape = SHAPES.get(setting.unit, SHAPES["document"])
        hollow = bool(setting.variants)
        markers.append(Marker(label, setting.label, f"c{number}", shape, hollow))
    return markers
