"""The tokens kept and read, in the metadata of results on request."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever

QUERY = "Who signed the treaty?"
KEYS = ("spscanner_tokens_kept", "spscanner_tokens_read")


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("kind", ["sentence", "node", "pruned"])
def test_every_result_has_the_tokens_of_all(word_scorer: Any, documents: list[Document], kind: Any) -> None:
    options: dict[str, Any] = {"scorer": word_scorer, "k": 2, "return_nodes": kind, "count_tokens": words}
    plain = SPScannerCompressor(**options).compress_documents(documents, QUERY)
    found = SPScannerCompressor(**options, keep_compression=True).compress_documents(documents, QUERY)
    assert not any(key in result.metadata for result in plain for key in KEYS)
    kept = sum(words(result.page_content) for result in found)
    read = sum(words(document.page_content) for document in documents)
    assert {tuple(result.metadata[key] for key in KEYS) for result in found} == {(kept, read)}
    assert found == plain  # what depends on the question makes no other document
    retriever = SPScannerRetriever.from_documents(documents, **options, keep_compression=True)
    assert retriever.invoke(QUERY)[0].metadata[KEYS[1]] == read


def test_a_scorer_that_cannot_count_is_refused_at_once() -> None:
    class Lengths:
        def score_units(self, query: str, text: str, units: Sequence[Any]) -> NDArray[np.float32]:
            return np.zeros(len(units), np.float32)

    with pytest.raises(ValueError, match="keep_compression: got True, but Lengths counts no tokens"):
        SPScannerCompressor(scorer=Lengths(), keep_compression=True)
