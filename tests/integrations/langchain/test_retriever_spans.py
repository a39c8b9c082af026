"""Every returned span indexes the document that the chunks were cut from."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever
from tests.fakes import ScoredBy

WORDS = (
    "well ship treaty island 東京 café Dr. U.S. e.g. 3.14 signed the of a naïve 😀 Ω"
).split()


BY_PLACE = ScoredBy(
    lambda query, text, units: ((unit.start * 7919) % 13 - 6 for unit in units)
)
"""A logit that depends only on a sentence's position."""


@st.composite
def texts(draw: st.DrawFn) -> str:
    seed = random.Random(draw(st.integers(0, 2**32)))
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 25))):
        parts.append(" ".join(seed.choices(WORDS, k=seed.randint(1, 15))))
        parts.append(
            seed.choice([". ", ".\n", "?  ", "!\n\n", " ", ";\t", ".\n\n\n", " \r\n"])
        )
    return draw(st.sampled_from(["", "\n\n", "  "])) + "".join(parts)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[Document], list[Document]]:
    """Documents, and some or all of their chunks, out of order."""
    count = draw(st.integers(1, 3))
    wholes = [
        Document(draw(texts()), metadata={"source": str(n)}, id=str(n))
        for n in range(count)
    ]
    size = draw(st.integers(8, 200))
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=draw(st.integers(0, size // 2)),
        add_start_index=True,
        strip_whitespace=draw(st.booleans()),
    )
    chunks = splitter.split_documents(wholes)
    random.Random(draw(st.integers(0, 9))).shuffle(chunks)
    return wholes, chunks


def options() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "k": st.sampled_from([None, 3]),
            "merge_adjacent": st.booleans(),
            "context_sentences": st.integers(0, 1),
            "order": st.sampled_from(["score", "document"]),
            "document_key": st.sampled_from(["source", None]),
        }
    )


def check_spans(
    found: Sequence[Document],
    wholes: Sequence[Document],
    exact: bool,
    merged: bool = False,
) -> None:
    for result in found:
        text = wholes[int(result.metadata["source"])].page_content
        span = text[result.metadata["start_index"] : result.metadata["end_index"]]
        assert len(span) == len(result.page_content)
        if exact:
            assert span == result.page_content
        elif (
            merged
        ):  # a short missing chunk leaves a gap like that of dropped white space
            words = iter(span.split())
            assert all(word in words for word in result.page_content.split())
        else:  # white space that the splitter dropped is restored by its length
            assert span.split() == result.page_content.split()
    assert len({d.id for d in found}) == len(found)


@settings(max_examples=40)
@given(corpora(), options(), st.data())
def test_spans_of_some_of_the_chunks(
    corpus: tuple[list[Document], list[Document]],
    fields: dict[str, Any],
    data: st.DataObject,
) -> None:
    wholes, chunks = corpus
    some = data.draw(st.lists(st.sampled_from(chunks), max_size=8)) if chunks else []
    found = SPScannerCompressor(scorer=BY_PLACE, **fields).compress_documents(
        some, "treaty"
    )
    check_spans(found, wholes, exact=False, merged=fields["merge_adjacent"])


@settings(max_examples=40)
@given(corpora(), options(), st.data())
def test_spans_with_whole_documents(
    corpus: tuple[list[Document], list[Document]],
    fields: dict[str, Any],
    data: st.DataObject,
) -> None:
    wholes, chunks = corpus
    some = chunks[: data.draw(st.integers(0, len(chunks)))]
    stage = RunnableLambda(lambda query: some)
    retriever = SPScannerRetriever.from_retriever(
        stage, documents=wholes, scorer=BY_PLACE, **fields
    )
    check_spans(retriever.invoke("treaty"), wholes, exact=True)
    compressor = SPScannerCompressor(documents=wholes, scorer=BY_PLACE, **fields)
    check_spans(compressor.compress_documents(some, "treaty"), wholes, exact=True)
    check_spans(
        SPScannerRetriever.from_documents(wholes, scorer=BY_PLACE, **fields).invoke(
            "treaty"
        ),
        wholes,
        exact=True,
    )


@pytest.mark.parametrize("retrieved", [False, True])
@pytest.mark.parametrize("unknown", ["tokens", "no offsets", "some"])
def test_chunks_that_do_not_know_their_place_give_each_sentence_once(
    unknown: str, retrieved: bool
) -> None:
    facts = [f"Barge number {n} carried {7 * n + 30} casks of oil." for n in range(24)]
    whole = Document(
        "\n\n".join(" ".join(facts[n : n + 4]) for n in range(0, 24, 4)),
        metadata={"source": "log"},
    )
    tokens = {
        "length_function": lambda text: len(text) // 4,
        "separators": ["\n\n", ". ", " "],
    }
    options: dict[str, Any] = {
        "chunk_size": 150,
        "chunk_overlap": 60,
        "add_start_index": unknown != "no offsets",
    }
    if unknown == "tokens":
        options |= tokens | {"chunk_size": 30, "chunk_overlap": 20}
    chunks = RecursiveCharacterTextSplitter(**options).split_documents([whole])
    if (
        unknown == "tokens"
    ):  # LangChain's token splitters mark what they cannot find in this way
        assert -1 in [chunk.metadata["start_index"] for chunk in chunks]
    if unknown == "some":
        for chunk in chunks[::3]:
            chunk.metadata["start_index"] = -1
    if retrieved:
        found = SPScannerCompressor(scorer=BY_PLACE, k=None).compress_documents(
            chunks, "casks"
        )
    else:
        found = SPScannerRetriever.from_documents(
            chunks, scorer=BY_PLACE, k=None
        ).invoke("casks")
    assert sorted(one.page_content.strip() for one in found) == sorted(facts)
    for one in found:
        start, end = one.metadata["start_index"], one.metadata["end_index"]
        assert start == -1 or whole.page_content[start:end] == one.page_content


@pytest.mark.parametrize(
    "texts",
    [
        ["Anne signed it. She left.", "Nobody signed the lease. It rained."],
        [
            "One well. It was dry.",
            "One well. It was full.",
            "A mill.",
        ],  # both have a sentence
        [
            "A letter on the treaty. He wrote twice.",
            "He wrote twice.",
        ],  # one is a part of another
    ],
)
@pytest.mark.parametrize("ids", [False, True])
def test_documents_that_share_a_source_have_spans_in_themselves(
    texts: list[str], ids: bool
) -> None:
    documents = [
        Document(text, metadata={"source": "faq"}, id=str(n) if ids else None)
        for n, text in enumerate(texts)
    ]
    retriever = SPScannerRetriever.from_documents(documents, scorer=BY_PLACE, k=None)
    compressor = SPScannerCompressor(scorer=BY_PLACE, k=None)
    for found in (
        retriever.invoke("treaty"),
        compressor.compress_documents(documents, "treaty"),
    ):
        assert found
        for one in found:
            start, end = one.metadata["start_index"], one.metadata["end_index"]
            assert any(text[start:end] == one.page_content for text in texts)
        assert len({one.metadata["spscanner_id"] for one in found}) == len(found)
