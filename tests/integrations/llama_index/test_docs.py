"""The documentation page: its tables name every parameter with its default."""

import inspect
import re
from pathlib import Path

from llama_index.postprocessor.spscanner import SPScannerPostprocessor
from llama_index.retrievers.spscanner import SPScannerRetriever

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "llama-index.md").read_text(encoding="utf-8")


def documented() -> dict[str, str]:
    """Second cell of the table rows whose first cell names parameters, by name."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|([^|]*)\|", PAGE, re.MULTILINE)
    return {name: default.strip(" `") for names, default in rows for name in re.findall(r"\w+", names)}


def test_every_parameter_is_there_with_its_default() -> None:
    table = documented()
    fields = SPScannerPostprocessor.model_fields
    assert fields.keys() <= table.keys()
    for name, field in fields.items():
        if field.default_factory is None:
            assert table[name] == repr(field.default).replace("'", '"'), name
    for name, parameter in inspect.signature(SPScannerRetriever.__init__).parameters.items():
        if name in ("similarity_top_k", "top_k_per_document", "first_stage", "retriever", "read_documents"):
            assert table[name] == repr(parameter.default)
        elif name not in ("self", "nodes", "documents", "model_kwargs"):
            assert name in table
            if name in fields and fields[name].default_factory is None:
                assert parameter.default == fields[name].default
