"""Groups: one question with a stretch of its own document and stretches of other documents of the same source.

The stretches are ranked together, so that a document without the answer learns to stay below the one that has it.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.questions import Drawn, Negatives, hard_negative
from spscanner_rag.lab.training.data.source_collections import AskedSource, SourceCollections
from spscanner_rag.lab.training.data.stretches import (
    Cut,
    Example,
    Labelled,
    full_stretch,
    room_for,
    spread_stretch,
    tokens_of,
    trimmed,
)
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.bm25 import REACH
from spscanner_rag.lexical.match import LexicalStatistics
from spscanner_rag.results.coverage import relevant_units
from spscanner_rag.scan.prepare import PreparedText, Reading
from spscanner_rag.text.tokenization import tokenize_question

ALONE_SHARE = 0.5
"""Share of groups whose documents are the whole collection that lexical statistics are taken over. For the others
it has more documents of the source, any number up to all, so that the model learns collections of every size."""

MOST_STRETCHES = 4
"""A group has at most this many times ``group_documents`` stretches, however short they are."""

_HARD_CHOICE = 4  # hard documents are drawn from the nearest, this many times as many as are wanted

_TOKEN_CHARACTERS = 5  # more than a token has in most texts


@dataclass(frozen=True, slots=True)
class _Stretch:
    document: int
    begin: int  # where the part of the document that was cut and tokenized begins in it
    text: PreparedText  # that part
    first: int  # unit of the part
    last: int

    @property
    def tokens(self) -> int:
        return tokens_of(self.text.unit_ends, self.first, self.last)

    @property
    def span(self) -> tuple[int, int]:
        """Its first character in the document, and the one after its last."""
        return self.begin + self.text.units[self.first].start, self.begin + self.text.units[self.last].end


class GroupDraw:
    """Draws groups from parts of an `ExampleSource`; ``comparable`` is `QuestionDraw.comparable`."""

    def __init__(
        self,
        documents: DocumentStore,
        reading: Reading,
        recipe: Recipe,
        comparable: Callable[[random.Random], Drawn],
        collections: SourceCollections,
    ) -> None:
        self._documents, self._reading, self._recipe = documents, reading, recipe
        self._comparable, self._collections = comparable, collections
        self._negatives = Negatives(documents)

    def group(self, draw: random.Random) -> Example | None:
        """A group; its first stretch has the evidence. None if this draw found none."""
        drawn = self._comparable(draw)
        most = self._recipe.group_tokens
        asked_tokens = len(tokenize_question(self._reading.tokenizer, drawn.question.text))
        room = room_for(asked_tokens, most, self._reading.reanchor_tokens)
        if room < most // 4:
            return None
        asked = self._collections.ask(drawn.document, drawn.question.text)
        own = self._own_stretches(drawn, asked, room, draw)
        others = self._chosen(own, self._others(drawn, asked, room, draw), room) if own else []
        if not others:
            return None
        numbers = [drawn.document, *(stretch.document for stretch in others)]
        members = numbers if draw.random() < ALONE_SHARE else asked.some(numbers, draw)
        statistics = asked.statistics(members)
        first, *rest = (self._example(drawn, stretch, statistics) for stretch in [*own, *others])
        return replace(first, others=tuple(rest)) if first.relevant.any() else None

    def _example(self, drawn: Drawn, stretch: _Stretch, statistics: LexicalStatistics) -> Example:
        text, relevant = stretch.text, np.zeros(len(stretch.text.units), bool)
        if stretch.document == drawn.document:
            starts, ends = text.starts + stretch.begin, text.ends + stretch.begin
            relevant = relevant_units(starts, ends, drawn.question.evidence)
        asked = self._reading.pair(drawn.question.text, text, statistics)
        return Labelled(asked, relevant).cut(stretch.first, stretch.last)

    def _own_stretches(
        self, drawn: Drawn, asked: AskedSource, room: int, draw: random.Random
    ) -> list[_Stretch]:
        """A stretch with evidence and, sometimes, one around a hard negative elsewhere in the document."""
        number = drawn.document
        starts = self._collections.unit_starts(number)
        stops = np.append(starts[1:], np.iinfo(np.int32).max)
        relevant = relevant_units(starts, stops, drawn.question.evidence)
        if not relevant.any():
            return []
        spread, hard = self._recipe.spread_share, self._recipe.hard_place_share
        cut = spread_stretch if spread and draw.random() < spread else full_stretch
        first = self._stretch(number, int(draw.choice(np.flatnonzero(relevant))), room, draw, cut)
        if first is None or not hard or draw.random() >= hard:
            return [] if first is None else [first]
        begin, end = first.span
        elsewhere = ~relevant & ((starts >= end) | (stops <= begin))
        unit = hard_negative(asked.scores(number), elsewhere, draw)
        if unit is None:
            return [first]
        within = (0, begin) if starts[unit] < begin else (end, int(stops[-1]))
        second = self._stretch(number, unit, room, draw, within=within)
        return [first] if second is None else [first, second]

    def _chosen(self, own: list[_Stretch], others: Iterable[_Stretch], room: int) -> list[_Stretch]:
        """As many stretches of other documents as fit the group when it is padded to its longest."""
        wanted, found = self._recipe.group_documents, list[_Stretch]()
        longest = max(stretch.tokens for stretch in own)
        for stretch in others:
            longest = max(longest, stretch.tokens)
            count = len(own) + len(found) + 1
            if count > MOST_STRETCHES * wanted or count * longest > wanted * room:
                break
            found.append(stretch)
        return found

    def _others(self, drawn: Drawn, asked: AskedSource, room: int, draw: random.Random) -> Iterator[_Stretch]:
        """Stretches of documents without the answer: ``group_hard`` hard ones, then easy ones, and so on."""
        hard, length = self._recipe.group_hard, self._recipe.group_documents - 1
        near = [number for number in asked.nearest() if not self._negatives.related(drawn.document, number)]
        first = near[: _HARD_CHOICE * hard]
        nearest = iter([*draw.sample(first, len(first)), *near[len(first) :]])
        easy = iter(draw.sample(asked.numbers.tolist(), len(asked.numbers)))
        taken: set[int] = set()
        place = 0
        while True:
            number = next(nearest if place % length < hard else easy, None)
            if number is None:
                number = next(easy, None)
            if number is None:
                return
            if number in taken or self._negatives.related(drawn.document, number):
                continue
            taken.add(number)
            scores = asked.scores(number)
            stretch = self._stretch(number, int(scores.argmax()), room, draw) if len(scores) else None
            if stretch is not None and not self._answers_too(drawn.question, stretch):
                place += 1
                yield stretch

    def _stretch(
        self,
        number: int,
        unit: int,
        room: int,
        draw: random.Random,
        cut: Cut = full_stretch,
        within: tuple[int, int] | None = None,
    ) -> _Stretch | None:
        """A stretch around a unit of a document, ``within`` these characters; None if the unit is too long."""
        starts, whole = self._collections.unit_starts(number), self._documents.document(number).text
        low, high = (0, len(whole)) if within is None else within
        at, reach = int(starts[unit]), _TOKEN_CHARACTERS * room
        start = min(max(low, at - draw.randrange(reach)), max(low, high - reach))
        first, stop = np.searchsorted(starts, [start, min(high, max(start + reach, at + 1))]).tolist()
        # further units are read, not taken: they are the surroundings of the first and the last
        begin = int(starts[max(0, first - max(REACH))])
        after = stop + max(REACH)
        text = self._reading.prepare(whole[begin : int(starts[after]) if after < len(starts) else None])
        bounds = [starts[first], starts[stop] if stop < len(starts) else len(whole)]
        least, most = np.searchsorted(text.starts + begin, bounds).tolist()
        ends = text.unit_ends[least:most] - (int(text.unit_ends[least - 1]) + 1 if least else 0)
        if not len(ends):
            return None
        centre = max(0, int(np.searchsorted(text.starts, at - begin, side="right")) - 1 - least)
        one, last = trimmed(ends, *cut(ends, centre, room, draw), centre, room)
        stretch = _Stretch(number, begin, text, least + one, least + last)
        return stretch if stretch.tokens <= room else None

    def _answers_too(self, question: Question, stretch: _Stretch) -> bool:
        """True if a stretch of another document has an answer's words."""
        if not question.answers:
            return False
        document = self._documents.document(stretch.document)
        return self._negatives.have_answer(document.text[slice(*stretch.span)], document.source, question)
