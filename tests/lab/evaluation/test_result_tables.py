"""Tables of a result, from handmade records."""

from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.result_tables import documents_table
from spscanner_lab.evaluation.rows import rows_of
from spscanner_lab.evaluation.tables import shown
from spscanner_rag.baselines.settings import Setting

STAGED, INDEXED = Setting("scanner", variants=("2 documents by bm25",)), Setting("bm25")


def of_corpus(
    setting: Setting, source: str, doc: str, rank: int, recall: float
) -> Record:
    metrics = {"recall@10": recall, "document_mrr": 1 / rank}
    metrics |= {f"document_recall@{k}": float(rank <= k) for k in (1, 5, 10)}
    metrics |= {"seconds": 0.25, "documents_read": 2, "tokens_read": 1500}
    return Record(*setting.key, source, "dev", doc, "q", 900, metrics)


OF_CORPORA = [
    of_corpus(STAGED, "a", "d1", 1, 1.0),
    of_corpus(STAGED, "a", "d2", 2, 0.5),
    of_corpus(STAGED, "b", "d3", 1, 0.0),
    of_corpus(INDEXED, "a", "d1", 4, 0.5),
    of_corpus(INDEXED, "a", "d2", 4, 0.5),
]


def test_the_table_of_documents() -> None:
    settings = [STAGED, INDEXED]
    table = documents_table(
        EvaluationResult(rows_of(OF_CORPORA, settings), [], settings)
    )
    assert (
        table.head
        == "source retriever MRR @1 @5 @10 evidence@10 documents tokens seconds".split()
    )
    body = [[shown(cell) for cell in cells] for cells in table.body]
    cells = {tuple(line[:2]): line[2:] for line in body}
    staged, costs = cells["a", "scanner, 2 documents by bm25"], ["2", "1,500", "0.25"]
    assert staged[0] == "75.0 (50.0 to 100.0)"
    assert staged[-4:] == ["75.0 (50.0 to 100.0)", *costs]
    assert cells["a", "bm25"][0] == "25.0 (25.0 to 25.0)"
    assert cells["macro", "scanner, 2 documents by bm25"][0].startswith("87.5 (")
    assert [line[0] for line in body] == [
        "a",
        "a",
        "b",
        "macro",
        "macro",
        "micro",
        "micro",
    ], "not b of bm25"
    assert {len(line) for line in body} == {len(table.head)}
    assert {(0, 2), (0, 3), (0, 4), (1, 4)} < set(table.best), (
        "the best of a source and unit"
    )
    assert not {(1, 2), (0, 7), (0, 9)} & set(table.best)


def test_one_source_has_no_means() -> None:
    table = documents_table(
        EvaluationResult(rows_of(OF_CORPORA[3:], [INDEXED]), [], [INDEXED])
    )
    assert [line[0] for line in table.body] == ["bm25"]
