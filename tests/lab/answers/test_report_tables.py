"""Tables of a report on answers."""

from spscanner_lab.answers.report import answer_rows
from spscanner_lab.answers.report_tables import answer_tables
from spscanner_lab.evaluation.tables import Table, shown
from tests.lab.answers.scored_answers import NOTHING, OF_BM25, scored, set_of


def cells_of(table: Table) -> list[list[str]]:
    """The cells as text, without intervals."""
    return [[shown(cell, interval=False) for cell in cells] for cells in table.body]


def test_the_table_counts_what_failed_and_what_was_not_decided() -> None:
    sets = [OF_BM25, NOTHING]
    table, sources, lengths = answer_tables(sets, answer_rows(sets), judged=True)
    body = cells_of(table)
    assert [cells[0] for cells in body] == ["bm25", "whole document"]
    assert body[0][1:3] == ["66.7", "75.0"], "over questions, then over sources"
    assert body[0][7:] == ["5", "1", "1", "5", "1,000", "50"]
    assert body[1][1:] == ["-"] * 6 + ["1", "1", "0", "1", "9", "0"]
    assert len(table.head) == len(body[0])
    assert cells_of(sources)[2][:2] == ["b", "bm25"]
    assert cells_of(sources)[2][-3:] == ["3", "1", "1"]
    assert lengths.body == [], "nobody knows the lengths"
    unjudged, *_ = answer_tables([OF_BM25], answer_rows([OF_BM25]), judged=False)
    assert unjudged.body[0][9] == "0", "nothing was to decide"


def test_a_benchmark_a_category_and_a_length_have_the_paper_s_rows() -> None:
    """Means over questions and over sources differ; both are shown."""
    answers = [scored("large", f"{n}", 0.5, n < 7, tokens=5_000) for n in range(97)]
    answers += [
        scored("quality", "c", None, True, choice=True, tokens=300_000, category="x"),
        scored("quality", "d", None, True, choice=True, tokens=300_000, category="x"),
        scored("small", "e", 1.0, False, tokens=300_000, category="other"),
    ]
    sets = [set_of(*answers)]
    means, categories, sources, lengths = answer_tables(sets, answer_rows(sets), True)
    assert cells_of(means)[0][1:3] == ["9.0", "35.7"]
    by_source = {cells[0]: cells[2:6] for cells in cells_of(sources)}
    assert by_source["quality"] == ["100.0", "N/A", "N/A", "2"]
    assert by_source["small"] == ["0.0", "100.0", "100.0", "1"]
    by_category = {cells[0]: cells[2:4] for cells in cells_of(categories)}
    assert by_category == {"x": ["100.0", "100.0"], "other": ["0.0", "0.0"]}
    by_length = {cells[1]: cells[2::3] for cells in cells_of(lengths)}
    assert by_length == {"1-8k": ["7.2", "97"], "256k+": ["66.7", "3"]}
