"""Pages as readers return them: one document, without headers and footers."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import MetadataMode, NodeWithScore

from spscanner_rag.files.documents import packed
from spscanner_rag.text.word_boxes import WORDS_KEY
from tests.integrations.hosts import (
    ALL,
    HOLDING,
    CompressorHost,
    Doc,
    Found,
    Host,
    PostprocessorHost,
    Uncounted,
    all_four,
    both_retrievers,
)

# As pypdf extracts them: a header, lines of one width, a footer with the page number,
# and no blank lines.
HEADER = "Port Elm Historical Society\n"
PAGES = [
    (
        f"{HEADER}The harbour of Port Elm was built in 1701 by the\ntown's own people."
        " In the winter of 1810 the council met\neleven times. A treaty was at last"
        " signed with the\nPage 1 of 3"
    ),
    (
        f"{HEADER}northern towns by Captain Moore. Trade doubled within\nthree years."
        " The lighthouse burned down in 1820.\nPage 2 of 3"
    ),
    (
        f"{HEADER}It was rebuilt in stone. Its new lamp could be seen from\nthe far"
        " side of the strait.\nPage 3 of 3"
    ),
]
SENTENCES = [
    "The harbour of Port Elm was built in 1701 by the\ntown's own people.",
    "In the winter of 1810 the council met\neleven times.",
    "A treaty was at last signed with the\nnorthern towns by Captain Moore.",
    "Trade doubled within\nthree years.",
    "The lighthouse burned down in 1820.",
    "It was rebuilt in stone.",
    "Its new lamp could be seen from\nthe far side of the strait.",
]


def pages_of(host: Host) -> list[Doc]:
    """The forms in which ``PyPDFLoader`` and `SimpleDirectoryReader` return them."""
    file = {
        "source": "/data/report.pdf",
        "file_path": "/data/report.pdf",
        "file_name": "report.pdf",
    }
    first = 0 if isinstance(host, CompressorHost | type(HOLDING[0])) else 1
    return [
        Doc(text, f"p{n}", {**file, "page": n + first, "page_label": str(n + 1)})
        for n, text in enumerate(PAGES)
    ]


def check(found: Sequence[Found]) -> None:
    """All sentences are at their stated places; one of them runs over a page break."""
    assert [each.text for each in found] == SENTENCES
    labels = {}
    for each in found:
        number = int(each.metadata["page_label"]) - 1
        labels[each.metadata["page"]] = labels[each.metadata["page_label"]] = number
    over = []
    for each in found:
        stands = PAGES[labels[each.metadata["page"]]][slice(*each.span)]
        if "spscanner_continued_page" in each.metadata:
            place = (
                each.metadata[f"spscanner_continued_{key}"] for key in ("start", "end")
            )
            stands += (
                "\n"
                + PAGES[labels[each.metadata["spscanner_continued_page"]]][
                    slice(*place)
                ]
            )
            over.append((each.text, each.metadata["page_label"]))
            assert labels[each.metadata["spscanner_continued_page"]] == 1
        assert stands == each.text
    assert over == [(SENTENCES[2], "1")]


def asked(host: Host, given: Sequence[Any], **options: Any) -> list[Found]:
    made = host.of([], scorer=Uncounted(), order="document", **options)
    return [host.found(result) for result in host.call(made, "treaty", given)]


def continued(found: Sequence[Found]) -> bool:
    return any("spscanner_continued_page" in each.metadata for each in found)


@both_retrievers
def test_pages_of_a_file_are_one_document(host: Host) -> None:
    scorer, pages = Uncounted(), pages_of(host)
    check(host.ask([pages[2], *pages[:2]], "treaty", scorer=scorer, order="document"))
    assert len(scorer.texts) == 1


@pytest.mark.parametrize("size", [20, 25, 40, 1024])
def test_chunks_of_pages_in_llama_index(size: int) -> None:
    host = PostprocessorHost()
    pages = host.given(pages_of(host))
    for page in pages:  # long metadata leave the splitter less room for text
        page.excluded_embed_metadata_keys = page.excluded_llm_metadata_keys = list(
            page.metadata
        )
    chunks = SentenceSplitter(
        chunk_size=size, chunk_overlap=size // 4
    ).get_nodes_from_documents(pages)
    assert len(chunks) > 3 or size == 1024
    check(asked(host, [NodeWithScore(node=node) for node in chunks]))
    some = [node for node in chunks if "A treaty" not in node.get_content()]
    assert not continued(asked(host, some))  # text is missing between them


def test_chunks_of_pages_in_langchain() -> None:
    host = CompressorHost()
    pages = host.given(pages_of(host))
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=60, chunk_overlap=20, add_start_index=True
    )
    chunks = splitter.split_documents(pages)
    check(asked(host, chunks, documents=pages))
    # Without the pages, nothing shows whether a chunk is the last of its page.
    assert not continued(asked(host, chunks))
    assert not continued(
        asked(
            host,
            [
                LangChainDocument(p.page_content[:-12], metadata=p.metadata)
                for p in pages
            ],
        )
    )


@pytest.mark.parametrize("host", [ALL[1], ALL[3]])
@pytest.mark.parametrize(
    ("metadata", "document_key", "texts"),
    [
        ({}, "auto", 1),
        ({"file_path": None}, "auto", 1),  # file_name
        ({"page_label": None, "page": None}, "auto", 3),  # no pages
        ({"file_path": None, "file_name": None}, "auto", 3),
        ({"page_label": None, "page": 7}, "auto", 1),
        ({}, None, 3),
        ({}, "file_name", 1),
        ({}, "title", 3),
    ],
)
def test_document_keys(
    host: Host, metadata: dict[str, Any], document_key: str | None, texts: int
) -> None:
    scorer = Uncounted()
    pages = [
        Doc(page.text, page.id, page.metadata | metadata) for page in pages_of(host)
    ]
    host.ask(pages, "x", scorer=scorer, document_key=document_key)
    assert len(scorer.texts) == texts
    if texts == 3:
        assert sorted(scorer.texts) == sorted(
            PAGES
        )  # nothing is left out of a single page


@all_four
def test_pages_of_two_files_are_two_documents(host: Host) -> None:
    scorer, pages = Uncounted(), pages_of(host)
    other = {"source": "/data/other.pdf", "file_path": "/data/other.pdf"}
    host.ask(
        [*pages, *(Doc(p.text, f"o{p.id}", p.metadata | other) for p in pages)],
        "x",
        scorer=scorer,
    )
    assert len(scorer.texts) == 2


@both_retrievers
def test_a_sentence_that_begins_on_a_page_that_was_not_given_has_no_span(
    host: Any,
) -> None:
    """Its text is not all on that page, and other offsets are none."""
    options: dict[str, Any] = {
        "scorer": Uncounted(),
        "order": "document",
        **host.only(page_label="2"),
    }
    begun, *others = host.ask(pages_of(host), "treaty", **options)
    assert (begun.text, begun.metadata["page_label"]) == (SENTENCES[2], "2")
    assert begun.span in ((None, None), (-1, -1))
    assert [each.text for each in others] == SENTENCES[3:5]
    assert all(each.span[0] > 0 for each in others)


def with_words(doc: Doc, number: int) -> Doc:
    """A page whose n-th word is alone in a line, n points from the left."""
    spans = [word.span() for word in re.finditer(r"\S+", doc.text)]
    words = [
        (*span, 10 * n, -100 * n - 50, 10 * n + 5, -100 * n)
        for n, span in enumerate(spans)
    ]
    return Doc(
        doc.text,
        doc.id,
        {**doc.metadata, WORDS_KEY: packed(number + 1, np.array(words, np.int32))},
    )


@all_four
@pytest.mark.parametrize("mode", ["sentence", "pruned"])
def test_results_have_the_boxes_of_their_words_and_no_model_gets_them(
    host: Host, mode: str
) -> None:
    docs = [with_words(doc, number) for number, doc in enumerate(pages_of(host))]
    made = host.of(docs, scorer=Uncounted(), order="document", return_nodes=mode)
    results = host.call(made, "treaty", host.given(docs))
    found = [host.found(result) for result in results]
    for each in found:
        assert WORDS_KEY not in each.metadata
        boxes = each.metadata.get("spscanner_boxes", [])
        shown = [PAGES[page - 1].split()[int(x0)] for page, x0, *_ in boxes]
        assert shown == (each.text.split() if mode == "sentence" else [])
    for node in (result.node for result in results if hasattr(result, "node")):
        for to in (MetadataMode.LLM, MetadataMode.EMBED):
            assert "spscanner" not in node.get_content(metadata_mode=to)
            assert "page_label" in node.get_content(metadata_mode=to)
