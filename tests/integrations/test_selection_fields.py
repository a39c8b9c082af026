"""The fields of every framework class offer all options of a selection."""

from typing import Any

import pytest

from haystack_integrations.components.spscanner.base_component import ComponentFields
from langchain_spscanner import SPScannerCompressor
from langchain_spscanner import SPScannerRetriever as LangChainRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner.retriever_fields import NodeRetrieverFields
from spscanner_rag.results.selection import SELECTION_OPTIONS
from spscanner_rag.retrieval import ScanFields
from tests.fakes import EQUAL

CLASSES = (
    LangChainRetriever,
    SPScannerCompressor,
    SPScannerPostprocessor,
    NodeRetrieverFields,
    ComponentFields,
)
OTHER_DEFAULTS = {"order": "score"}
"""The frameworks want the best first."""

VALUES: dict[str, Any] = {
    "top_k": 3,
    "threshold": 0.25,
    "max_tokens": 100,
    "count_tokens": len,
    "context": 2,
    "order": "document",
    "merge": True,
    "diversity": 0.5,
    "top_k_per_text": 4,
    "always_keep": ["1911"],
    "keep": "strict",
    "prefer": "newest",
    "require_answer": 0.75,
}
"""A value of each option that is not its default."""

every_class = pytest.mark.parametrize("fields", CLASSES)


def made(fields: type[ScanFields], **options: Any) -> ScanFields:
    """An object of a class that needs documents or not."""
    if fields is LangChainRetriever:
        options["documents"] = []
    return fields(scorer=EQUAL, **options)


@every_class
def test_every_option_is_a_field(fields: type[ScanFields]) -> None:
    names = fields.selection_names()
    assert names.keys() == SELECTION_OPTIONS.keys()
    assert len(set(names.values())) == len(names)
    for option, name in names.items():
        default = OTHER_DEFAULTS.get(option, SELECTION_OPTIONS[option].default)
        if fields is ComponentFields and option == "top_k":
            default = None  # the ranker and the extractor have defaults of their own
        assert fields.model_fields[name].default == default, name


def test_every_option_has_an_example_value() -> None:
    missing = sorted(SELECTION_OPTIONS.keys() - VALUES.keys())
    assert not missing, f"add values of {missing} to VALUES in {__file__}"


@every_class
@pytest.mark.parametrize("option", VALUES)
def test_every_field_reaches_the_selection_and_is_checked(
    fields: type[ScanFields], option: str
) -> None:
    name = fields.selection_names()[option]
    options = {name: VALUES[option]}
    if option == "max_tokens":
        options["count_tokens"] = len  # the scorer has no tokenizer
    search = made(fields, **options).sentence_search()
    assert getattr(search.selection, option) == VALUES[option]
    with pytest.raises(ValueError, match=rf"{name}\b"):
        made(fields, **{name: object()})
