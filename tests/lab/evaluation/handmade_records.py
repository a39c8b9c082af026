"""Records of two settings for three documents, whose values are known by hand."""

from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.rows import length_bin
from spscanner_rag.baselines.settings import Setting

SETTINGS = [Setting("scanner", "sentence"), Setting("bm25", "chunk")]


def record(
    setting: Setting,
    source: str,
    doc: str,
    qid: str,
    recall: float,
    characters: int = 5_000,
) -> Record:
    return Record(
        *setting.key,
        source=source,
        split="dev",
        doc_id=doc,
        qid=qid,
        characters=characters,
        metrics={
            "recall@10": recall,
            "ndcg@10": recall / 2,
            "mrr": recall,
            "tokens@10": 100,
            "seconds": 2.0,
        }
        | {f"recall_at_tokens@{budget}": recall for budget in (1000, 2000)}
        | {
            f"recall_by_length@{length_bin(characters)}": recall,
            "recall_by_position@10@1": recall,
        },
    )


RECORDS = [
    record(SETTINGS[0], "a", "d1", "q1", 1.0),
    record(SETTINGS[0], "a", "d1", "q2", 0.0),
    record(SETTINGS[0], "a", "d2", "q3", 1.0, 50_000),
    record(SETTINGS[0], "b", "d3", "q4", 0.0),
    record(SETTINGS[1], "a", "d1", "q1", 0.5),
    record(SETTINGS[1], "a", "d1", "q2", 0.0),
    record(SETTINGS[1], "a", "d2", "q3", 0.5),
    record(SETTINGS[1], "b", "d3", "q4", 0.0),
]
