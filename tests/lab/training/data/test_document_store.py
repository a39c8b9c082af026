from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training.data.documents import DocumentStore, PreparedTexts
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.text.segmentation import SentenceSegmenter


@given(st.lists(st.text(max_size=20), max_size=6))
def test_any_texts_come_back(texts: list[str]) -> None:
    documents = [Document(str(i), "s", "t", text, ()) for i, text in enumerate([*texts, "lone \ud800"])]
    store = DocumentStore(documents)
    assert len(store) == len(documents)
    assert [store.document(number) for number in reversed(range(len(store)))] == documents[::-1]
    assert list(store) == documents


def test_in_memory_are_questions_only(tmp_path: Path, documents: list[Document]) -> None:
    store = DocumentStore(iter(documents), tmp_path / "new")
    assert store.without_text(1) == replace(documents[1], text="")
    assert list((tmp_path / "new").iterdir()) == []  # the file has no name, so nothing is left behind


def test_recently_used_texts_stay_prepared(
    store: DocumentStore, documents: list[Document], tiny_tokenizer: Tokenizer
) -> None:
    reading = Reading(tiny_tokenizer, SentenceSegmenter(), "last_character")
    room = len(documents[0].text) + len(documents[1].text)
    texts = PreparedTexts(store, reading, room)
    first, second = texts.get(0), texts.get(1)
    assert first[0] == documents[0].text
    assert first[1].units == reading.prepare(documents[0].text).units
    assert texts.get(0)[1] is first[1]
    texts.get(2)  # the least recently used makes room
    assert texts.get(0)[1] is first[1]
    assert texts.get(1)[1] is not second[1]
    assert texts.characters <= room + 10


def test_a_text_beyond_the_bound_is_kept_while_it_is_used(
    store: DocumentStore, tiny_tokenizer: Tokenizer
) -> None:
    texts = PreparedTexts(store, Reading(tiny_tokenizer, SentenceSegmenter(), "last_character"), 1)
    assert texts.get(0)[1] is texts.get(0)[1]
    texts.get(1)
    assert texts.characters == len(texts.get(1)[0])
