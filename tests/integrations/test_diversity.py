"""Diversity and an adaptive number of sentences, in the classes of both frameworks."""

from collections.abc import Sequence

import numpy as np
import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import Document
from llama_index.core.schema import NodeWithScore
from numpy.typing import NDArray

from langchain_spscanner import SPScannerCompressor
from langchain_spscanner import SPScannerRetriever as LangChainRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaIndexRetriever
from spscanner_rag.text.units import Unit

TEXT = "Otters swim in the lake. The otter swims in lakes. Herons stand still. It rained."
QUERY = "What do animals do?"
DIVERSE = {"Otters swim in the lake.", "Herons stand still."}
ABOVE = DIVERSE | {"The otter swims in lakes."}


class Falling:
    """Three good sentences, the first of them best."""

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return np.array([3, 2.9, 2.5, -5], np.float32)[: len(units)]


@pytest.mark.parametrize(
    ("options", "expected"), [({"diversity": 0.5, "most": 2}, DIVERSE), ({"most": "elbow"}, ABOVE)]
)
def test_all_four_classes(options: dict[str, object], expected: set[str]) -> None:
    most, scorer = options["most"], Falling()
    own = {name: value for name, value in options.items() if name != "most"}
    documents = [LangChainDocument(TEXT)]
    retriever = LangChainRetriever(documents=documents, scorer=scorer, k=most, **own)
    assert {found.page_content for found in retriever.invoke(QUERY)} == expected
    compressor = SPScannerCompressor(scorer=scorer, k=most, **own)
    assert {d.page_content for d in compressor.compress_documents(documents, QUERY)} == expected
    nodes = LlamaIndexRetriever([Document(text=TEXT)], scorer=scorer, similarity_top_k=most, **own)  # type: ignore[arg-type]
    assert {found.text for found in nodes.retrieve(QUERY)} == expected
    post = SPScannerPostprocessor(scorer=scorer, top_n=most, **own)
    given = [NodeWithScore(node=Document(text=TEXT))]
    assert {found.text for found in post.postprocess_nodes(given, query_str=QUERY)} == expected


def test_what_is_out_of_range_is_named_by_its_field() -> None:
    with pytest.raises(ValueError, match="diversity: got 2"):
        LlamaIndexRetriever([Document(text=TEXT)], scorer=Falling(), diversity=2)
    with pytest.raises(ValueError, match="k: got 'knee'"):
        SPScannerCompressor(scorer=Falling(), k="knee")
    with pytest.raises(ValueError, match="top_n: got 'elbow:9-3'"):
        SPScannerPostprocessor(scorer=Falling(), top_n="elbow:9-3")
