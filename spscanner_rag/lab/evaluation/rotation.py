"""Rotates documents at a sentence end, so that the same evidence is near the beginning or near the end.

Only the place of the evidence changes: every sentence is kept once, and no evidence is split.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lab.evaluation.corpora import Corpus
from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.rows import Row, finder, paired_samples, row_of, sources_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import Average, Estimate, paired_ratio
from spscanner_rag.lab.evaluation.tables import Table, percent, shown
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked, by_document
from spscanner_rag.results.coverage import Spans, evidence_sentences
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit, units_of

JOINER = "\n\n"
"""Between the end of the document and its beginning, so that their sentences do not run together."""

PARTS = 10  # evidence is moved into the first or the last of this many equal parts of the text

TENTHS = ("first tenth", "last tenth")  # the variants of a setting

METRIC, RATIO, LEFT_OUT = "recall@10", "recall_last_over_first", "left_out"


@dataclass(frozen=True, slots=True)
class Rotation:
    """A text that begins at a cut, ``text[cut:] + JOINER + text[:cut]``; unchanged by a cut at an end."""

    text: str
    cut: int

    @property
    def rotated(self) -> str:
        """The rotated text."""
        if self.cut in (0, len(self.text)):
            return self.text
        return self.text[self.cut :] + JOINER + self.text[: self.cut]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """A span of the text in the rotated text; raises ``ValueError`` if the cut splits it."""
        if start < self.cut < end:
            raise ValueError(
                f"the cut {self.cut} splits the span [{start}, {end}]; expected a cut outside it"
            )
        shift = int(_shifts(np.array([start]), np.array([self.cut]), len(self.text))[0, 0])
        return start + shift, end + shift

    def units(self, units: Sequence[Unit]) -> list[Unit]:
        """The units of the text in the rotated text, in its order; raises ``ValueError`` if the cut splits one."""
        return units_of(self.rotated, sorted(self.span(unit.start, unit.end) for unit in units))


def cuts_for(
    units: Spans, evidence: Sequence[tuple[int, int]], characters: int, parts: int = PARTS
) -> tuple[int, int] | None:
    """Two cuts of a text, that move its evidence into the first part and into the last; None if one is impossible.

    A cut is the start of one of the ``units``, the sentences of the text, and splits no evidence. Of several,
    the one that brings the middle of the evidence nearest to the middle of the part is taken.
    """
    sentences = evidence_sentences(units, evidence)
    if not len(sentences.starts):
        return None
    cuts = units.starts
    for start, end in evidence:
        cuts = cuts[(cuts <= start) | (cuts >= end)]
    if not len(cuts):
        return None
    shifts = _shifts(sentences.starts, cuts, characters)
    low = (sentences.starts + shifts).min(axis=1)
    high = (sentences.ends + shifts).max(axis=1)
    totals = characters + len(JOINER) * (cuts > 0)
    first = _nearest(parts * high <= totals, np.abs(parts * (low + high) - totals))
    last = _nearest(
        parts * low >= (parts - 1) * totals, np.abs(parts * (low + high) - (2 * parts - 1) * totals)
    )
    return None if first is None or last is None else (int(cuts[first]), int(cuts[last]))


def rotate(document: Document, question: Question, sentences: Sequence[Unit], cut: int) -> Corpus:
    """Rotate a document, its sentences and a question's evidence; raises ``ValueError`` if the cut splits one."""
    rotation = Rotation(document.text, cut)
    moved = replace(question, evidence=tuple(rotation.span(*span) for span in question.evidence))
    document = replace(document, text=rotation.rotated)
    return Corpus(document.source, (document,), [(document, moved)], sentences={0: rotation.units(sentences)})


def rotatable(questions: Mapping[str, Sequence[Asked]]) -> dict[str, list[Asked]]:
    """The questions, by source, that both rotations of their document allow; ``ValueError`` for none."""
    found = {
        source: [(document, question) for document, question, *_ in _with_cuts(asked)]
        for source, asked in questions.items()
    }
    if not any(found.values()):
        raise ValueError(
            f"none of {sum(map(len, questions.values()))} questions has all of its evidence within a tenth of "
            "its document; expected at least one: give other documents, or leave out --rotate"
        )
    return {source: kept for source, kept in found.items() if kept}


def rotated(questions: Mapping[str, Sequence[Asked]], tenth: str) -> Iterator[Corpus]:
    """A rotated document for each question of `rotatable`, with its evidence in the first or in the last tenth."""
    for asked in questions.values():
        for document, question, sentences, cuts in _with_cuts(asked):
            yield rotate(document, question, sentences, cuts[TENTHS.index(tenth)])


def _with_cuts(
    asked: Sequence[Asked],
) -> Iterator[tuple[Document, Question, Sequence[Unit], tuple[int, int]]]:
    """The questions that both rotations allow, with the sentences of their document and the two cuts."""
    segmenter = SentenceSegmenter()
    for document, questions in by_document(asked):
        sentences = segmenter.segment(document.text)
        for question in questions:
            cuts = cuts_for(Spans.of(sentences), question.evidence, len(document.text))
            if cuts is not None:
                yield document, question, sentences, cuts


def rotation_rows(
    records: Sequence[Record],
    settings: Sequence[Setting],
    asked: Mapping[str, Sequence[Asked]],
    kept: Mapping[str, Sequence[Asked]],
    seed: int = 0,
) -> list[Row]:
    """The ratios of recall@10, and the shares of the questions left out.

    There is no ratio where recall in the first tenth is 0. ``kept`` are the questions of `rotatable`.
    """
    rows: list[Row] = []
    for setting in settings:
        rows += _ratios(records, setting, seed)
        left = {**kept, "micro": list(chain(*kept.values()))}
        for source, pairs in {**asked, "micro": list(chain(*asked.values()))}.items():
            left_out = 1 - len(left.get(source, ())) / len(pairs)
            documents = len({(document.source, document.doc_id) for document, _ in pairs})
            share = Estimate(left_out, None, None, len(pairs), documents)
            splits = (document.split for document, _ in pairs)
            rows.append(row_of(setting, source, splits, LEFT_OUT, None, share))
    return rows


def rotation_table(rows: Sequence[Row], settings: Sequence[Setting]) -> Table:
    """The table of a result, from the rows of `rows_of` and `rotation_rows`, for the plain settings."""
    find = finder(rows)
    body = []
    for source in [*sorted(sources_of(rows)), "macro", "micro"]:
        for setting in settings:
            recalls = [find(setting.varied(variant), "recall", 10, source) for variant in TENTHS]
            questions = f"{recalls[0]['questions'] if recalls[0] else 0:,}"
            left_out = find(setting, LEFT_OUT, None, "micro" if source == "macro" else source)
            if left_out:
                questions += f" ({round(left_out['value'] * left_out['questions']):,})"
            ratio = shown(find(setting, RATIO, 10, source))
            body.append([source, setting.label, questions, *map(percent, recalls), ratio])
    return Table(
        "Evidence in the first and in the last tenth",
        "Every question on its document twice, rotated at sentence ends so that all of its evidence stands "
        "once in the first and once in the last tenth. Recall@10 and last / first (with its 95 % interval) "
        "in percent; questions whose evidence spreads over more than a tenth are left out.",
        ["source", "retriever", "asked (left out)", *TENTHS, "last / first"],
        body,
    )


def _shifts(starts: NDArray[np.int64], cuts: NDArray[np.int64], characters: int) -> NDArray[np.int64]:
    """How far each cut moves each start: (cuts, starts)."""
    cuts = cuts[:, None]
    behind = np.where(cuts < characters, characters - cuts + len(JOINER), 0)
    moved: NDArray[np.int64] = np.where((starts >= cuts) | (cuts == 0), -cuts, behind)
    return moved


def _nearest(possible: NDArray[np.bool_], distances: NDArray[np.int64]) -> int | None:
    places = np.flatnonzero(possible)
    return int(places[np.argmin(distances[places])]) if len(places) else None


def _ratios(records: Sequence[Record], setting: Setting, seed: int) -> Iterator[Row]:
    tenths = [setting.varied(variant) for variant in TENTHS]
    first, last = paired_samples(records, tenths[0], tenths[1], METRIC)
    splits: dict[str, set[str]] = {}
    for record in records:
        splits.setdefault(record.source, set()).add(record.split)
    parts: list[tuple[str, Average, list[str]]] = [(source, "macro", [source]) for source in first]
    if first:
        parts += [("macro", "macro", list(first)), ("micro", "micro", list(first))]
    for name, average, sources in parts:
        below, above = ({source: samples[source] for source in sources} for samples in (first, last))
        found = paired_ratio(below, above, average, seed=seed)
        if found is not None:
            yield row_of(setting, name, chain(*(splits[source] for source in sources)), RATIO, 10, found)
