import copy
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import ValidationError

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever, _documents
from spscanner_rag.retrieval import shared_scanners
from spscanner_rag.scanner import Scanner

QUERY = "Who signed the treaty?"


def options(checkpoint: Path) -> dict[str, Any]:
    return {"model": str(checkpoint), "device": "cpu", "dtype": "float32"}


def test_scores_and_spans_are_those_of_the_scanner(
    tiny_scanner: Scanner, documents: list[Document], full_scores: Callable[..., Any]
) -> None:
    found = SPScannerRetriever.from_documents(documents, scanner=tiny_scanner).invoke(QUERY)
    assert len(found) == 10
    for document in documents:
        texts = [d.page_content for d in documents]
        expected = full_scores(tiny_scanner, QUERY, document.page_content, texts)
        own = [d for d in found if d.metadata["source"] == document.metadata["source"]]
        logits = {
            (d.metadata["start_index"], d.metadata["end_index"]): d.metadata["spscanner_logit"] for d in own
        }
        assert logits.keys() == expected.keys()
        np.testing.assert_allclose([logits[span] for span in expected], list(expected.values()), atol=1e-4)
        for result in own:
            span = slice(result.metadata["start_index"], result.metadata["end_index"])
            assert document.page_content[span] == result.page_content


def test_score_is_a_probability_and_the_logit_stands_beside_it(
    word_scorer: Any, documents: list[Document]
) -> None:
    found = SPScannerRetriever.from_documents(documents, scorer=word_scorer).invoke("signed the treaty")
    logits = [d.metadata["spscanner_logit"] for d in found]
    assert logits == sorted(logits, reverse=True)
    assert logits[0] == 2.0
    assert logits[-1] == -1.0  # a logit may be negative, a score not
    np.testing.assert_allclose(
        [d.metadata["relevance_score"] for d in found], 1 / (1 + np.exp(-np.array(logits))), rtol=1e-6
    )


def test_metadata_of_the_source_is_kept_and_copied(word_scorer: Any, documents: list[Document]) -> None:
    found = SPScannerRetriever.from_documents(documents, scorer=word_scorer).invoke(QUERY)
    for result in found:
        source = next(d for d in documents if d.metadata["source"] == result.metadata["source"])
        assert source.metadata.items() <= result.metadata.items()
        added = {"relevance_score", "start_index", "end_index", "spscanner_logit", "spscanner_id"}
        added.add("spscanner_document_score")
        assert result.metadata.keys() - source.metadata.keys() == added
    found[0].metadata.get("tags", []).append("changed")
    found[-1].metadata.get("author", {})["name"] = "changed"
    assert documents[0].metadata["tags"] == ["sea", "town"]
    assert documents[1].metadata["author"] == {"name": "A"}
    again = SPScannerRetriever.from_documents(documents, scorer=word_scorer).invoke(QUERY)
    assert all("changed" not in str(result.metadata) for result in again)


def test_metadata_that_can_not_be_copied_deeply_is_copied_shallowly(word_scorer: Any) -> None:
    module = sys.modules[__name__]  # modules can not be copied
    document = Document("A treaty. Rain.", metadata={"handle": module})
    found = SPScannerRetriever.from_documents([document], scorer=word_scorer, k=1).invoke("treaty")
    assert found[0].metadata["handle"] is module
    assert found[0].metadata is not document.metadata


def test_ids_are_deterministic_and_differ(word_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    first, second = retriever.invoke(QUERY), retriever.invoke(QUERY)
    assert [d.id for d in first] == [d.id for d in second] == [d.metadata["spscanner_id"] for d in first]
    assert len({d.id for d in first}) == len(first)
    assert {d.id for d in first if d.metadata["source"] == "harbour.txt"} >= {"h:0-30"}


@pytest.mark.slow
def test_ids_without_document_ids_are_the_same_in_every_process() -> None:
    script = (
        "import runpy\n"  # the module alone, without torch
        f"names = runpy.run_path({_documents.__file__!r})\n"
        "from langchain_core.documents import Document\n"
        "d = Document('text', metadata={'b': {'x', 'y', 'z'}, 'a': [1, {'k': 2.5}], 'page': 3})\n"
        "print(names['own_name'](d), names['parent_name'](d))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].split()) == 2


def test_without_the_framework_the_import_names_the_extra() -> None:
    script = "import sys; sys.modules['langchain_core'] = None; import langchain_spscanner"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert 'pip install "spscanner-rag[langchain]"' in run.stderr


def test_k_as_field_and_as_argument(word_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer, k=4)
    assert len(retriever.invoke(QUERY)) == 4
    assert len(retriever.invoke(QUERY, k=2)) == 2
    assert len(retriever.invoke(QUERY, None, k=None)) == 10
    assert len(retriever.invoke(QUERY)) == 4


def test_default_is_fifty_best_first(word_scorer: Any) -> None:
    retriever = SPScannerRetriever.from_texts(["One ship. " * 40, "A treaty. " * 40], scorer=word_scorer)
    found = retriever.invoke("treaty")
    assert len(found) == 50
    assert [d.page_content for d in found[:41]] == ["A treaty."] * 40 + ["One ship."]


def test_threshold_is_inclusive(word_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    best = retriever.invoke("signed the treaty")
    bound = next(d.metadata["relevance_score"] for d in best if d.metadata["spscanner_logit"] == 0.0)
    assert bound == 0.5
    kept = retriever.invoke("signed the treaty", threshold=0.5)
    assert [d.metadata["spscanner_logit"] for d in kept][-1] == 0.0
    above = retriever.invoke("signed the treaty", threshold=float(np.nextafter(0.5, 1)))
    assert 0 < len(above) < len(kept)
    assert retriever.invoke("signed the treaty", threshold=0.999) == []


def test_token_budget(tiny_scanner: Scanner, word_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scanner=tiny_scanner)
    found = retriever.invoke(QUERY, max_tokens=60)
    assert 0 < sum(tiny_scanner.count_tokens(d.page_content) for d in found) <= 60
    counted = SPScannerRetriever.from_documents(
        documents, scorer=word_scorer, max_tokens=12, count_tokens=lambda text: len(text.split())
    ).invoke(QUERY)
    assert 0 < sum(len(d.page_content.split()) for d in counted) <= 12


def test_order_neighbours_and_merging(word_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(
        documents, scorer=word_scorer, k=1, context_sentences=1, order="document", merge_adjacent=True
    )
    (found,) = retriever.invoke("Who signed the treaty on the island?")
    assert found.page_content == (
        "Its well was dry for years. Captain Moore signed the treaty on the island. The winter was long."
    )
    text = documents[1].page_content
    assert text[found.metadata["start_index"] : found.metadata["end_index"]] == found.page_content
    apart = retriever.model_copy(update={"merge_adjacent": False}).invoke("treaty on island")
    assert [d.metadata["start_index"] for d in apart] == sorted(d.metadata["start_index"] for d in apart)
    assert len(apart) == 3


def test_k_per_document(word_scorer: Any, documents: list[Document]) -> None:
    found = SPScannerRetriever.from_documents(documents, scorer=word_scorer, k_per_document=2).invoke(QUERY)
    sources = [d.metadata["source"] for d in found]
    assert sorted(sources) == ["harbour.txt"] * 2 + ["island.txt"] * 2


def test_pages_of_a_file_are_read_together_in_order(
    tiny_scanner: Scanner, full_scores: Callable[..., Any]
) -> None:
    pages = ["The well was dry.", "The council signed a treaty.", "Then the people left."]
    given = [
        Document(page, metadata={"source": "a.pdf", "page": number}) for number, page in enumerate(pages)
    ]
    retriever = SPScannerRetriever.from_documents([given[2], given[0], given[1]], scanner=tiny_scanner)
    found = retriever.model_copy(update={"order": "document"}).invoke(QUERY)
    assert [d.page_content for d in found] == pages
    assert [d.metadata["page"] for d in found] == [0, 1, 2]
    assert [d.metadata["start_index"] for d in found] == [0, 0, 0]  # spans are those in the page
    together = full_scores(tiny_scanner, QUERY, "\n\n".join(pages))
    np.testing.assert_allclose(
        [d.metadata["spscanner_logit"] for d in found], list(together.values()), atol=1e-4
    )
    alone = SPScannerRetriever.from_documents(given, scanner=tiny_scanner, document_key=None).invoke(QUERY)
    logits = {d.metadata["page"]: d.metadata["spscanner_logit"] for d in alone}
    for number, page in enumerate(pages):
        (expected,) = full_scores(tiny_scanner, QUERY, page, pages).values()
        assert logits[number] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "ordered"),
    [
        ([{"page": 10}, {"page": 9}], True),
        ([{"page_label": "10"}, {"page_label": "9"}], True),
        ([{"page_number": 10.0}, {"page_number": 9.0}], True),
        ([{"page": 10}, {"page_label": "9"}], False),  # not numbered by one key: as given
        ([{"page_label": "x"}, {"page_label": "9"}], False),
        ([{"page": True}, {"page": False}], False),
    ],
)
def test_order_of_pages(word_scorer: Any, labels: list[dict[str, Any]], ordered: bool) -> None:
    given = [
        Document(text, metadata={"source": "a.pdf", **label})
        for text, label in zip(["Second one.", "First one."], labels, strict=True)
    ]
    retriever = SPScannerRetriever.from_documents(given, scorer=word_scorer, order="document")
    expected = ["First one.", "Second one."] if ordered else ["Second one.", "First one."]
    assert [d.page_content for d in retriever.invoke("one")] == expected


def test_inputs_are_never_changed(
    tiny_scanner: Scanner, documents: list[Document], unchanged: Callable[..., Callable[[], None]]
) -> None:
    chunks = [
        Document("The council signed a treaty.", metadata={"source": "c", "start_index": 40, "score": 0.5}),
        Document(
            "A second chunk. It is longer.", metadata={"source": "c", "start_index": 69, "nested": [{}]}
        ),
    ]
    given = [*documents, *chunks]
    compare = unchanged(given)
    for order, merge, key, keep, context, budget in product(
        ("score", "document"), (False, True), ("source", None), (False, True), (0, 2), (None, 40)
    ):
        retriever = SPScannerRetriever.from_documents(
            given,
            scanner=tiny_scanner,
            order=order,
            merge_adjacent=merge,
            document_key=key,
            keep_retrieval_score=keep,
            context_sentences=context,
            max_tokens=budget,
            k=3,
            k_per_document=2,
        )
        found = retriever.invoke(QUERY)
        assert found
        compare()
        for result in found:
            result.metadata.clear()
        compare()


def test_documents_changed_later_do_not_change_the_retriever(
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
        iter(["A treaty.", "Some rain."]), [{"n": 1}, {"n": 2}], ["x", None], scorer=word_scorer
    )
    first, second = retriever.invoke("treaty")
    assert (first.id, first.metadata["n"]) == ("x:0-9", 1)
    assert second.id is not None
    assert second.metadata["n"] == 2
    assert len(SPScannerRetriever.from_texts(["One.", "Two."], scorer=word_scorer).invoke("one")) == 2
    with pytest.raises(ValueError, match="metadatas: got 1 for 2 texts"):
        SPScannerRetriever.from_texts(["a", "b"], [{}])
    with pytest.raises(ValueError, match="ids: got 3 for 2 texts"):
        SPScannerRetriever.from_texts(["a", "b"], ids=["1", "2", "3"])


def test_equal_texts_of_different_documents_are_both_found(word_scorer: Any) -> None:
    given = [Document("A treaty.", metadata={"source": name}) for name in "ab"]
    found = SPScannerRetriever.from_documents([*given, given[0]], scorer=word_scorer).invoke("treaty")
    assert sorted(d.metadata["source"] for d in found) == ["a", "b"]  # one document given twice counts once
    assert len({d.id for d in found}) == 2


def test_two_documents_with_one_id_are_refused() -> None:
    given = [Document("A treaty.", id="same"), Document("Rain.", id="same")]
    with pytest.raises(ValidationError, match="two different documents with the id 'same'"):
        SPScannerRetriever.from_documents(given)


def test_nothing_to_scan(documents: list[Document]) -> None:
    assert SPScannerRetriever.from_documents([], model="no/such-model").invoke(QUERY) == []
    empty = SPScannerRetriever.from_texts(["", "  \n "], scorer=_Fails())
    assert empty.invoke(QUERY) == []


class _Fails:
    def score_units(self, query: str, text: str, units: Any) -> Any:
        assert not list(units), "asked for scores of nothing"
        return np.zeros(0, np.float32)


def test_add_and_delete(word_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(documents[:1], scorer=word_scorer, k=1)
    assert retriever.invoke("captain moore")[0].metadata["source"] == "harbour.txt"
    copied = retriever.model_copy()
    assert retriever.add_documents(documents[1:]) == ["i"]
    assert retriever.invoke("captain moore")[0].metadata["source"] == "island.txt"
    assert copied.invoke("captain moore")[0].metadata["source"] == "harbour.txt"
    retriever.add_documents([Document("Captain Moore is here.", id="i")])  # in place of the other
    assert retriever.invoke("captain moore")[0].page_content == "Captain Moore is here."
    (name,) = retriever.add_documents([Document("Nameless.")])
    retriever.delete([name, "i"])
    assert {d.id.split(":")[0] for d in retriever.invoke("nameless", k=50) if d.id} == {"h"}
    with pytest.raises(ValueError, match=r"no document 'i' here"):
        retriever.delete(["h", "i"])
    retriever.delete("h")
    assert retriever.invoke("anything") == []


def test_documents_by_assignment_are_scanned(word_scorer: Any, documents: list[Document]) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer, k=1)
    retriever.invoke("treaty")
    other = retriever.model_copy(update={"documents": [Document("A new treaty.")]})
    assert other.invoke("treaty")[0].page_content == "A new treaty."
    assert retriever.invoke("captain")[0].page_content.startswith("Captain")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"k": 0}, r"k: got 0; expected an integer of at least 1"),
        ({"k": -3}, "k: got -3"),
        ({"k": 1.5}, "k: got 1.5"),
        ({"k": True}, "k: got True"),
        ({"k": "3"}, "k: got '3'"),
        ({"k_per_document": 0}, "k_per_document: got 0"),
        ({"threshold": 1.5}, "threshold: got 1.5"),
        ({"threshold": float("nan")}, "threshold: got nan"),
        ({"max_tokens": 0}, "max_tokens: got 0"),
        ({"count_tokens": "no_such"}, "count_tokens: got 'no_such'"),
        ({"context_sentences": -1}, "context_sentences: got -1"),
        ({"order": "random"}, "order: got 'random'"),
        ({"merge_adjacent": "yes"}, "merge_adjacent: got 'yes'"),
        ({"batch_size": 0}, "batch_size"),
        ({"read_documents": 0}, "read_documents: got 0"),
        ({"read_tokens": True}, "read_tokens: got True"),
        ({"first_stage": "bm26"}, "first_stage: got 'bm26'"),
        (
            {"first_stage": "none", "retriever": RunnableLambda(lambda query: [])},
            "retriever: got first_stage",
        ),
        ({"top_k": 3}, "top_k"),
        ({"model_kwargs": {"windows": 3}}, "got 'windows'; expected arguments of Scanner.from_pretrained"),
        ({"model_kwargs": {"device": "cpu"}}, "got 'device'"),
        ({"model": "a", "scorer": _Fails()}, "model and scorer"),
    ],
)
def test_a_field_out_of_range_is_refused_at_construction(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SPScannerRetriever.from_texts(["A treaty."], **fields)


def test_what_can_not_score_or_retrieve_is_refused_at_construction(documents: list[Document]) -> None:
    with pytest.raises(TypeError, match=r"scanner is str; expected a spscanner_rag\.Scanner"):
        SPScannerRetriever.from_documents(documents, scanner="MambaRetriever/SPScanner-130m")
    with pytest.raises(TypeError, match="scorer is int"):
        SPScannerRetriever.from_documents(documents, scorer=3)
    with pytest.raises(TypeError, match="documents: got str"):
        SPScannerRetriever.from_documents(["a text"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="retriever: got function"):
        SPScannerRetriever.from_retriever(lambda query: [])  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="got neither documents nor a retriever"):
        SPScannerRetriever()


def test_budget_without_a_counter_is_refused_at_construction(
    word_scorer: Any, documents: list[Document], events: Any
) -> None:
    with pytest.raises(ValidationError, match="WordScorer counts no tokens; expected count_tokens"):
        SPScannerRetriever.from_documents(documents, scorer=word_scorer, max_tokens=100)
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    with pytest.raises(ValueError, match="WordScorer counts no tokens"):
        retriever.invoke(QUERY, {"callbacks": [events]}, max_tokens=100)
    assert events.seen == []


def test_the_model_loads_at_first_use_and_once(
    tiny_checkpoint: Path, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[object] = []
    load = Scanner.from_pretrained.__func__  # type: ignore[attr-defined]

    def counted(cls: type[Scanner], *args: Any, **kwargs: Any) -> Scanner:
        loads.append((args, kwargs))
        return load(cls, *args, **kwargs)

    shared_scanners.forget_shared_scanners()
    monkeypatch.setattr(Scanner, "from_pretrained", classmethod(counted))
    first = SPScannerRetriever.from_documents(documents, **options(tiny_checkpoint))
    second = SPScannerRetriever.from_documents(documents[:1], k=2, **options(tiny_checkpoint))
    third = pickle.loads(pickle.dumps(first))
    assert loads == []
    for retriever in (first, second, third, copy.deepcopy(first), first.model_copy()):
        assert retriever.invoke(QUERY)
    assert len(loads) == 1


def test_pickle_deepcopy_and_model_copy_give_the_same_results(
    tiny_checkpoint: Path, documents: list[Document]
) -> None:
    retriever = SPScannerRetriever.from_documents(documents, k=3, **options(tiny_checkpoint))
    expected = retriever.invoke(QUERY)
    data = pickle.dumps(retriever)
    assert len(data) < 20_000  # no model, and no texts made of the documents
    for other in (
        pickle.loads(data),
        copy.deepcopy(retriever),
        copy.copy(retriever),
        retriever.model_copy(),
        retriever.model_copy(deep=True),
        retriever.configurable_fields(k=ConfigurableField(id="k")),
    ):
        assert other.invoke(QUERY) == expected
    bound = retriever.configurable_fields(k=ConfigurableField(id="k"))
    assert len(bound.with_config(configurable={"k": 1}).invoke(QUERY)) == 1


def test_copies_share_the_scanner_that_was_given(
    tiny_scanner: Scanner, word_scorer: Any, documents: list[Document]
) -> None:
    with_scanner = SPScannerRetriever.from_documents(documents, scanner=tiny_scanner)
    assert copy.deepcopy(with_scanner).scanner is tiny_scanner
    assert with_scanner.model_copy(deep=True).scanner is tiny_scanner
    with_scorer = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    assert copy.deepcopy(with_scorer).scorer is word_scorer


def test_the_token_is_nowhere_to_be_seen(
    tiny_checkpoint: Path, documents: list[Document], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "hf_" + "s" * 20
    given = {"token": secret, "local_files_only": True}
    retriever = SPScannerRetriever.from_documents(
        documents, model_kwargs=given, k=2, **options(tiny_checkpoint)
    )
    assert given == {"token": secret, "local_files_only": True}
    assert retriever._search().choice.token.value == secret  # but it is used
    copied = copy.deepcopy(retriever)
    assert copied._search().choice.token.value == secret
    assert (
        retriever.configurable_fields(k=ConfigurableField(id="k")).default._search().choice.token.value
        == secret
    )
    retriever.invoke(QUERY)
    shown = [
        repr(retriever),
        str(retriever),
        str(dumpd(retriever)),
        str(retriever.model_dump(exclude={"documents"})),
        retriever.model_dump_json(exclude={"documents", "count_tokens"}),
        str(dumpd(retriever | (lambda found: found))),
        str(retriever._get_ls_params()),
        caplog.text,
    ]
    assert not any(secret in text for text in shown)
    assert secret.encode() not in pickle.dumps(retriever)
    assert pickle.loads(pickle.dumps(retriever))._search().choice.token.value is None
    for wrong in ({"token": secret, "windows": 1}, {"token": secret}):
        with pytest.raises(ValidationError) as refused:
            SPScannerCompressor(model_kwargs=wrong, k=0)
        assert secret not in all_that_is_said(refused.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"model_kwargs": {"token": "hf_secret"}},  # neither documents nor a retriever
        {"model_kwargs": {"token": "hf_secret"}, "documents": [], "k": 0},
        {"model_kwargs": {"token": "hf_secret", "windows": 1}, "documents": []},
        {"model_kwargs": {"token": "hf_secret", 3: 4}, "documents": []},
        {"model_kwargs": [("token", "hf_secret")], "documents": []},
        {"model_kwargs": "hf_secret", "documents": []},
    ],
)
def test_a_validation_error_holds_no_token(fields: dict[str, Any]) -> None:
    for make in (lambda: SPScannerRetriever(**fields), lambda: SPScannerRetriever.model_validate(fields)):
        with pytest.raises(ValidationError) as refused:
            make()
        assert "hf_secret" not in all_that_is_said(refused.value)


def all_that_is_said(error: BaseException | None) -> str:
    """The text of an error and of those behind it, and what pydantic keeps of the input."""
    if error is None:
        return ""
    said = str(error) + repr(error)
    if isinstance(error, ValidationError):
        said += str(error.errors()) + error.json()
    return said + all_that_is_said(error.__cause__) + all_that_is_said(error.__context__)


def test_repr_does_not_hold_the_documents(documents: list[Document], word_scorer: Any) -> None:
    retriever = SPScannerRetriever.from_documents(documents, scorer=word_scorer, k=7)
    assert "k=7" in repr(retriever)
    assert "lighthouse" not in repr(retriever)
    assert "lighthouse" not in str(dumpd(retriever))


def test_tracing_parameters(tiny_checkpoint: Path, word_scorer: Any, documents: list[Document]) -> None:
    params = SPScannerRetriever.from_documents(documents, model=str(tiny_checkpoint))._get_ls_params()
    assert params["ls_retriever_name"] == "spscanner"
    assert params["ls_embedding_model"] == str(tiny_checkpoint)
    with_scorer = SPScannerRetriever.from_documents(documents, scorer=word_scorer)
    assert with_scorer._get_ls_params()["ls_embedding_model"] == "WordScorer"
