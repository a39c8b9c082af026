from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training.data.document_store import DocumentStore


@settings(max_examples=25)
@given(st.lists(st.text(max_size=20), max_size=6))
def test_any_texts_come_back(texts: list[str]) -> None:
    documents = [
        Document(str(i), "s", "t", text, ())
        for i, text in enumerate([*texts, "lone \ud800"])
    ]
    store = DocumentStore(documents)
    assert len(store) == len(documents)
    assert [
        store.document(number) for number in reversed(range(len(store)))
    ] == documents[::-1]
    assert list(store) == documents


def test_in_memory_are_questions_only(
    tmp_path: Path, documents: list[Document]
) -> None:
    store = DocumentStore(iter(documents), tmp_path / "new")
    assert store.without_text(1) == replace(documents[1], text="")
    # the file has no name, so it leaves nothing behind
    assert list((tmp_path / "new").iterdir()) == []
