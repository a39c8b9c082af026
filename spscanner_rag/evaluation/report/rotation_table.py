"""What the rotation of documents does to recall: the last tenth held against the first, by retriever."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from spscanner_rag.evaluation.records import Record
from spscanner_rag.evaluation.report.sections import Section, percent
from spscanner_rag.evaluation.report.table import Row, index_of, joined, paired_samples, row_of, sources_of
from spscanner_rag.evaluation.rotation import lay_first, lay_last
from spscanner_rag.evaluation.run import Layout, Setting
from spscanner_rag.evaluation.statistics import Average, Estimate, paired_ratio
from spscanner_rag.evidence.sampling import Asked

METRIC = "recall@10"
RATIO = "recall_last_over_first"
LEFT_OUT = "left_out"


class RotatedSetting(NamedTuple):
    """A setting, and the two that it is asked as."""

    plain: Setting
    first: Setting
    last: Setting

    @property
    def layouts(self) -> dict[Setting, Layout]:
        """How documents are laid out for the two."""
        return {self.first: lay_first, self.last: lay_last}


def rotated_setting(setting: Setting) -> RotatedSetting:
    """The settings "..., first tenth" and "..., last tenth" of a setting."""
    first, last = (
        setting._replace(retriever=f"{setting.retriever}, {part} tenth") for part in ("first", "last")
    )
    return RotatedSetting(setting, first, last)


def rotation_rows(
    records: Sequence[Record],
    settings: Sequence[RotatedSetting],
    asked: Mapping[str, Sequence[Asked]],
    kept: Mapping[str, Sequence[Asked]],
    seed: int = 0,
) -> list[Row]:
    """The ratios of recall@10, and the shares of the questions left out.

    Parameters
    ----------
    records
        Of the run.
    settings
        In the order of the table.
    asked, kept
        Questions by source before and after `rotatable`.
    seed
        Of the bootstrap.

    Returns
    -------
    list of Row
        By setting (its plain name); "recall_last_over_first" for each source, "macro" and "micro", left out
        where recall in the first tenth is 0; then "left_out" for each source and "micro".
    """
    rows: list[Row] = []
    for setting in settings:
        rows += _ratios(records, setting, seed)
        parts = {**asked, "micro": list(chain(*asked.values()))}
        left = {**kept, "micro": list(chain(*kept.values()))}
        for source, pairs in parts.items():
            left_out = 1 - len(left.get(source, ())) / len(pairs)
            documents = len({(document.source, document.doc_id) for document, _ in pairs})
            share = Estimate(left_out, None, None, len(pairs), documents)
            split = joined(document.split for document, _ in pairs)
            rows.append(row_of(setting.plain, source, split, LEFT_OUT, None, share))
    return rows


def rotation_section(
    rows: Sequence[Row], ratios: Sequence[Row], settings: Sequence[RotatedSetting]
) -> Section:
    """The table of a result.

    Parameters
    ----------
    rows
        From `rows_of`, with the rotated settings.
    ratios
        From `rotation_rows`.
    settings
    """
    index = index_of([*rows, *ratios])
    body = []
    for source in [*sorted(sources_of(ratios)), "macro", "micro"]:
        for plain, first, last in settings:
            recalls = [index.get((*tenth, "recall", 10, source)) for tenth in (first, last)]
            left_out = index.get((*plain, LEFT_OUT, None, "micro" if source == "macro" else source))
            numbers = ["-" if row is None else f"{100 * row['value']:.1f}" for row in recalls]
            ratio = percent(index.get((*plain, RATIO, 10, source)))
            body.append([source, plain.label, _counts(recalls[0], left_out), *numbers, ratio])
    return Section(
        "Evidence in the first and in the last tenth",
        "Every question on its document twice, rotated at sentence ends so that all of its evidence stands "
        "once in the first and once in the last tenth. Recall@10 and last / first (with its 95 % interval) "
        "in percent; questions whose evidence spreads over more than a tenth are left out.",
        ["source", "retriever", "asked (left out)", "first tenth", "last tenth", "last / first"],
        body,
    )


def _ratios(records: Sequence[Record], setting: RotatedSetting, seed: int) -> Iterator[Row]:
    first, last = paired_samples(records, setting.first, setting.last, METRIC)
    splits = {record.source: record.split for record in records}
    parts: list[tuple[str, Average, list[str]]] = [(source, "macro", [source]) for source in first]
    if first:
        parts += [("macro", "macro", list(first)), ("micro", "micro", list(first))]
    for name, average, sources in parts:
        below, above = ({source: samples[source] for source in sources} for samples in (first, last))
        found = paired_ratio(below, above, average, seed=seed)
        if found is not None:
            split = joined(splits[source] for source in sources)
            yield row_of(setting.plain, name, split, RATIO, 10, found)


def _counts(recall: Row | None, left_out: Row | None) -> str:
    questions = recall["questions"] if recall else 0
    if left_out is None:
        return f"{questions:,}"
    return f"{questions:,} ({round(left_out['value'] * left_out['questions']):,})"
