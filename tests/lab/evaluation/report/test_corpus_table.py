"""Tables of a run on corpora, from records made by hand."""

from spscanner_rag.lab.evaluation.corpora import Corpus
from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.report.corpus_table import corpora_table, documents_table
from spscanner_rag.lab.evaluation.report.rows import rows_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question

FIRST, SECOND = Setting("scanner", variants=("2 documents by bm25",)), Setting("bm25")


def record(setting: Setting, source: str, doc: str, rank: int, recall: float) -> Record:
    metrics = {"recall@10": recall, "document_mrr": 1 / rank}
    metrics |= {f"document_recall@{k}": float(rank <= k) for k in (1, 5, 10)}
    return Record(
        *setting.key, source, "dev", doc, "q", 900, metrics, seconds=0.25, documents_read=2, tokens_read=1500
    )


RECORDS = [
    record(FIRST, "a", "d1", 1, 1.0),
    record(FIRST, "a", "d2", 2, 0.5),
    record(FIRST, "b", "d3", 1, 0.0),
    record(SECOND, "a", "d1", 4, 0.5),
    record(SECOND, "a", "d2", 4, 0.5),
]


def test_documents() -> None:
    settings = [FIRST, SECOND]
    table = documents_table(rows_of(RECORDS, settings), settings)
    cells = {tuple(line[:2]): line[2:] for line in table.body}
    assert cells["a", "scanner, 2 documents by bm25"] == [
        "75.0 (50.0 to 100.0)",
        *("50.0", "100.0", "100.0"),
        "75.0",
        *("2", "1,500", "0.25", "-"),
    ]
    assert cells["a", "bm25"][:4] == ["25.0 (25.0 to 25.0)", "0.0", "100.0", "100.0"]
    assert cells["macro", "scanner, 2 documents by bm25"][0].startswith("87.5 (")
    assert ("b", "bm25") not in cells
    assert [line[0] for line in table.body] == ["a", "a", "b", "macro", "macro", "micro", "micro"]
    assert {len(line) for line in table.body} == {len(table.head)}


def test_corpora() -> None:
    documents = tuple(Document(name, "a", "", "x" * 700, ()) for name in "de")
    asked = [(documents[0], Question("q", "?", ((0, 1),)))] * 1200
    table = corpora_table([Corpus("a", documents, asked, 3, 4)])
    assert table.body == [["a", "2", "1,400", "1,200", "3", "4"]]
    assert len(table.head) == 6
