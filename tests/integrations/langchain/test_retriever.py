import copy
import pickle
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.runnables import ConfigurableField

from langchain_spscanner import SPScannerRetriever, _document_names

QUERY = "Who signed the treaty?"


def test_documents_changed_later_change_nothing(
    word_scorer: Any, documents: list[Document]
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer, k=1)
    before = retriever.invoke("lighthouse")
    documents[0].metadata["source"] = "other"
    documents[0].metadata["tags"].clear()
    documents[0].page_content = "gone"
    documents.clear()
    assert retriever.invoke("lighthouse") == before


def test_from_texts(word_scorer: Any) -> None:
    retriever = SPScannerRetriever.from_texts(
        iter(["A treaty.", "Some rain."]),
        [{"n": 1}, {"n": 2}],
        ["x", None],
        scorer=word_scorer,
    )
    first, second = retriever.invoke("treaty")
    assert (first.id, first.metadata["n"]) == ("x:0-9", 1)
    assert second.id is not None
    assert second.metadata["n"] == 2
    assert (
        len(
            SPScannerRetriever.from_texts(["One.", "Two."], scorer=word_scorer).invoke(
                "one"
            )
        )
        == 2
    )
    with pytest.raises(ValueError, match="metadatas: got 1 for 2 texts"):
        SPScannerRetriever.from_texts(["a", "b"], [{}])
    with pytest.raises(ValueError, match="ids: got 3 for 2 texts"):
        SPScannerRetriever.from_texts(["a", "b"], ids=["1", "2", "3"])


def test_documents_by_assignment_are_scanned(
    word_scorer: Any, documents: list[Document]
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer, k=1)
    retriever.invoke("treaty")
    other = retriever.model_copy(update={"documents": [Document("A new treaty.")]})
    assert other.invoke("treaty")[0].page_content == "A new treaty."
    assert retriever.invoke("captain")[0].page_content.startswith("Captain")


def test_what_the_framework_saves_and_traces_holds_no_token(
    documents: list[Document],
) -> None:
    secret = "hf_" + "s" * 20
    retriever = SPScannerRetriever.from_documents(
        documents, model_kwargs={"token": secret}
    )
    bound = retriever.configurable_fields(k=ConfigurableField(id="k"))
    for own in (retriever, copy.deepcopy(retriever), bound.default):
        assert own.sentence_search().choice.token.value == secret  # but it is used
    again = pickle.loads(pickle.dumps(retriever))
    assert again.sentence_search().choice.token.value is None
    shown = [
        dumpd(retriever),
        retriever.model_dump_json(exclude={"documents", "count_tokens"}),
        dumpd(retriever | (lambda found: found)),
        retriever._get_ls_params(),
    ]
    assert not any(secret in str(text) for text in shown)
    assert "lighthouse" not in repr(retriever)
    assert "lighthouse" not in str(shown[0])


def test_names_made_of_metadata_do_not_depend_on_their_order_or_place() -> None:
    class Thing:
        pass

    one, two = (
        Document("text", metadata={"b": own, "a": [1, Thing()], "n": number})
        for own, number in (({"x", "y"}, 3), (frozenset("yx"), 3.0))
    )
    assert _document_names.document_name(one) == _document_names.document_name(two)
    assert _document_names.parent_name(one) == _document_names.parent_name(two)
    assert _document_names.document_name(one) != _document_names.document_name(
        Document("text", metadata={**one.metadata, "n": 4})
    )


@pytest.mark.parametrize(
    ("labels", "ordered"),
    [
        ([{"page_label": "10"}, {"page_label": "9"}], True),
        ([{"page_number": 10.0}, {"page_number": 9.0}], True),
        (
            [{"page": 10}, {"page_label": "ix"}],
            False,
        ),  # one has no number, so the given order counts
    ],
)
def test_keys_of_page_numbers(
    word_scorer: Any, labels: list[dict[str, Any]], ordered: bool
) -> None:
    texts = ["Second one.", "First one."]
    metadata = [{"source": "a.pdf", **label} for label in labels]
    retriever = SPScannerRetriever.from_texts(
        texts, metadata, scorer=word_scorer, order="document"
    )
    assert [d.page_content for d in retriever.invoke("one")] == (
        texts[::-1] if ordered else texts
    )
