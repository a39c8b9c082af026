"""The strategy "link": a question that needs two far-apart parts, which the language model finds connected.

As in the paper's section on link-based synthesis, with the numbers of its released code.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError, Values, listed
from spscanner_rag.lab.synthesis.filters import is_about_a_notice
from spscanner_rag.lab.synthesis.reply_form import Field, Link, MalformedReplyError
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.strategies.made import Made, QuestionCheck
from spscanner_rag.lab.synthesis.sub_documents import SubDocument, joined_units

Span = tuple[int, int]
THIRDS = {"start": (0.0, 1 / 3), "middle": (1 / 3, 2 / 3), "end": (2 / 3, 1.0), "anywhere": (0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the chunk and its window stand, and where a linked unit may stand; unit numbers, ends exclusive."""

    chunk: Span
    window: Span
    linked_share: tuple[float, float]

    @property
    def shown(self) -> list[int]:
        """The units of the window without the chunk, in the order of the listing."""
        return [unit for unit in range(*self.window) if not self.chunk[0] <= unit < self.chunk[1]]

    def distance(self, unit: int) -> int:
        """How many units a linked unit is away from the nearest of the chunk; 1 for its neighbour."""
        return self.chunk[0] - unit if unit < self.chunk[0] else unit - self.chunk[1] + 1


def window_of(chunk: Span, units: int, window_units: int, margin: int, draw: random.Random) -> Span:
    """The longer of two windows, one of which begins and one ends ``margin`` units from the chunk.

    For a chunk of 5 units at ``i``, a window of 200 and a margin of 10: [i - 10, i + 190) and [i - 185, i + 15),
    both within the document. If both have the same length, one is drawn.
    """
    begins = max(0, chunk[0] - margin), min(units, chunk[0] - margin + window_units)
    ends = max(0, chunk[1] + margin - window_units), min(units, chunk[1] + margin)
    first, second = begins[1] - begins[0], ends[1] - ends[0]
    return draw.choice((begins, ends)) if first == second else begins if first > second else ends


def layout_of(units: int, settings: SynthesisSettings, number: int, draw: random.Random) -> Layout:
    """A random chunk with its window; the positions that are wanted come by turns, by the number."""
    size = settings.chunk_units
    if units < size + settings.closest_link + 1:
        raise DroppedError("too few units for a link")
    sides = ("anywhere", "anywhere")
    if settings.positions:
        sides = settings.positions[number % len(settings.positions)]
    chunk_side, linked_side = draw.sample(sides, 2)
    low, high = THIRDS[chunk_side]
    last = units - size
    first = draw.randint(
        min(last, int(low * units)), min(last, max(int(low * units), int(high * units) - size))
    )
    chunk = first, first + size
    window = window_of(chunk, units, settings.window_units, settings.window_margin, draw)
    return Layout(chunk, window, THIRDS[linked_side])


class LinkMaker:
    """Makes link questions; see `SynthesisSettings` for its numbers."""

    name = "link"

    def __init__(self, settings: SynthesisSettings, check: QuestionCheck) -> None:
        self._settings, self._check = settings, check

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """A question on a chunk and the farthest unit that the model links with it."""
        settings = self._settings
        units = joined_units(sub.sentences, settings.unit_tokens)
        draw = random.Random(f"{settings.seed}-{sub.doc_id}-link")
        layout = layout_of(len(units), settings, sub.number, draw)
        chunk_text = _joined(sub.text, units, layout.chunk)
        shown = layout.shown
        listing = listed(sub.text, [units[unit] for unit in shown])
        values = talk.values(
            "link_connections",
            {"CHUNK": chunk_text, "UNITS": listing},
            [Field("links", "links", len(shown))],
        )
        linked, connection = self._farthest(values["links"], layout, len(units))
        question = talk.values(
            "link_question",
            {
                "FIRST PART": chunk_text,
                "SECOND PART": _joined(sub.text, units, (linked, linked + 1)),
                "CONNECTION": connection,
            },
            [Field("question", "text")],
            self._check.of(sub),
        )["question"]
        around_chunk = _widened(layout.chunk, settings.chunk_widening, len(units))
        around_link = _widened((linked, linked + 1), settings.link_widening, len(units))
        chunk_units = self._relevant(question, sub.text, units, around_chunk, talk)
        linked_units = self._relevant(question, sub.text, units, around_link, talk)
        if not chunk_units or not linked_units:
            raise DroppedError("one side holds no relevant unit")
        evidence = sorted(units[unit] for unit in (*chunk_units, *linked_units))
        details: dict[str, Any] = {
            "strategy": "link",
            "connection": connection,
            "units": len(units),
            "chunk": list(layout.chunk),
            "linked_unit": linked,
            "distance": layout.distance(linked),
            "contexts": [list(_span(units, layout.chunk)), list(units[linked])],
            "labels": [_shares(chunk_units, around_chunk), _shares(linked_units, around_link)],
        }
        return Made(question, tuple(evidence), details=details)

    def _farthest(self, links: Sequence[Link], layout: Layout, units: int) -> tuple[int, str]:
        """The linked unit that is farthest from the chunk, by its number in the document, and the connection."""
        if not links:
            raise DroppedError("the model found no link")
        kept = [link for link in links if not is_about_a_notice(link.connection)]
        if not kept:
            raise DroppedError("the connection is about a licence or copyright notice")
        shown = layout.shown
        far = [
            (layout.distance(shown[index]), shown[index], connection)
            for index, connection in kept
            if layout.distance(shown[index]) > self._settings.closest_link
        ]
        if not far:
            raise DroppedError("every link is too close")
        low, high = layout.linked_share
        placed = [entry for entry in far if low <= (entry[1] + 0.5) / units <= high]
        if not placed:
            raise DroppedError("no link at the wanted position")
        _, unit, connection = max(placed, key=lambda entry: (entry[0], -entry[1]))
        return unit, connection

    def _relevant(
        self, question: str, text: str, units: Sequence[Span], among: Span, talk: Conversation
    ) -> list[int]:
        """The units of a range that the question needs; the model first says whether there is one."""
        values = talk.values(
            "label_units",
            {"QUESTION": question, "UNITS": listed(text, units[slice(*among)])},
            [Field("relevant", "yes or no"), Field("indices", "indices", among[1] - among[0])],
            labels_agree,
        )
        return [among[0] + index for index in values["indices"]] if values["relevant"] else []


def labels_agree(values: Values) -> None:
    """Raise `MalformedReplyError` unless there are numbers exactly where the decision is yes."""
    if values["relevant"] != bool(values["indices"]):
        raise MalformedReplyError("yes or no and the numbers disagree")


def _widened(span: Span, by: int, units: int) -> Span:
    return max(0, span[0] - by), min(units, span[1] + by)


def _span(units: Sequence[Span], span: Span) -> Span:
    return units[span[0]][0], units[span[1] - 1][1]


def _joined(text: str, units: Sequence[Span], span: Span) -> str:
    return " ".join(text[slice(*_span(units, span))].split())


def _shares(relevant: Sequence[int], among: Span) -> list[int]:
    """How many units are relevant, and of how many."""
    return [len(relevant), among[1] - among[0]]
