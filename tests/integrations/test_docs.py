"""The tables of two documentation pages name every parameter with its default."""

import inspect
import re
from pathlib import Path

from langchain_spscanner import SPScannerCompressor
from langchain_spscanner import SPScannerRetriever as LangChainRetriever
from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaIndexRetriever
from llama_index.retrievers.spscanner.retriever_fields import NodeRetrieverFields

DOCS = Path(__file__).resolve().parents[2] / "docs"


def table(page: str, default_column: int) -> dict[str, str]:
    """The defaults of all names in the first cells of a page's tables."""
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \|(.*)\|$",
        (DOCS / page).read_text("utf-8"),
        re.MULTILINE,
    )
    return {
        name: cells.split("|")[default_column].strip(" `")
        for names, cells in rows
        if cells.count("|") >= default_column
        for name in re.findall(r"\w+", names)
    }


def shown(value: object) -> str:
    return repr(value).replace("'", '"')


def test_langchain() -> None:
    rows = table("langchain.md", 1)
    fields = LangChainRetriever.model_fields | SPScannerCompressor.model_fields
    for name in fields.keys() - {"name", "tags", "metadata"}:
        default = fields[name].get_default(call_default_factory=True)
        assert name in rows
        assert default in (None, {}) or rows[name] == shown(default), name


def test_llama_index() -> None:
    rows = table("langchain.md", 1) | table("llama-index.md", 0)
    fields = SPScannerPostprocessor.model_fields
    for name, field in fields.items():
        default = field.get_default(call_default_factory=True)
        assert name in rows
        assert (
            field.default_factory or default is None or rows[name] == shown(default)
        ), name
    parameters = inspect.signature(
        LlamaIndexRetriever
    ).parameters.keys()  # options of the class too
    assert NodeRetrieverFields.model_fields.keys() < parameters
    assert parameters - {"nodes", "model_kwargs"} <= rows.keys()
    for name, field in NodeRetrieverFields.model_fields.items():
        if name in fields:
            assert (field.default, field.default_factory) == (
                fields[name].default,
                fields[name].default_factory,
            )
        else:
            assert rows[name] == shown(field.default)
