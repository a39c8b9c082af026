"""How well retrievers find the right document of a corpus, and what the corpora are."""

from collections.abc import Sequence

from spscanner_rag.lab.evaluation.corpora import Corpus
from spscanner_rag.lab.evaluation.report.rows import Row, finder, sources_of
from spscanner_rag.lab.evaluation.report.tables import Table, percent, shown
from spscanner_rag.lab.evaluation.run import DOCUMENT_CUTOFFS
from spscanner_rag.lab.evaluation.settings import Setting


def documents_table(rows: Sequence[Row], settings: Sequence[Setting]) -> Table:
    """A line for each source and setting, from the rows of a run on corpora."""
    find = finder(rows)
    body = []
    for source in [*sorted(sources_of(rows)), "macro", "micro"]:
        for setting in settings:
            rank = find(setting, "document_mrr", None, source)
            if rank is None:
                continue
            recalls = [find(setting, "document_recall", k, source) for k in DOCUMENT_CUTOFFS]
            evidence = find(setting, "recall", 10, source)
            costs = [
                _number(find(setting, name, None, source), digits)
                for name, digits in (
                    ("documents_read", 0),
                    ("tokens_read", 0),
                    ("seconds", 2),
                    ("index_megabytes", 1),
                )
            ]
            body.append(
                [source, setting.label, shown(rank), *map(percent, recalls), percent(evidence), *costs]
            )
    return Table(
        "The right document",
        "Each question was asked of many documents. MRR and @k: reciprocal rank of the document that answers it, "
        "and how often it is among the best k; its score is that of its best sentence or chunk. evidence@10: "
        "recall of the evidence among the best 10 sentences or chunks of all documents. Percent, with 95 % "
        "intervals. Documents and tokens scored, and seconds, for a question; an index is made before the "
        "clock starts.",
        [
            "source",
            "retriever",
            "MRR",
            *(f"@{k}" for k in DOCUMENT_CUTOFFS),
            "evidence@10",
            "documents",
            "tokens",
            "seconds",
            "index MB",
        ],
        body,
    )


def corpora_table(corpora: Sequence[Corpus]) -> Table:
    """A line for each corpus."""
    return Table(
        "The corpora",
        "Questions asked, and those left out: because their words are also a question of another document "
        "(repeated), or because their evidence is not in the part of the document that is read (cut off).",
        ["source", "documents", "characters", "asked", "repeated", "cut off"],
        [
            [
                corpus.source,
                f"{len(corpus.documents):,}",
                f"{sum(len(document.text) for document in corpus.documents):,}",
                f"{len(corpus.asked):,}",
                f"{corpus.repeated:,}",
                f"{corpus.cut_off:,}",
            ]
            for corpus in corpora
        ],
    )


def _number(row: Row | None, digits: int) -> str:
    return "-" if row is None else f"{row['value']:,.{digits}f}"
