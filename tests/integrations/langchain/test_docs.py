"""The tables of docs/langchain.md name every field with its default."""

import re
from pathlib import Path

from pydantic_core import PydanticUndefined

from langchain_spscanner import SPScannerCompressor, SPScannerRetriever

PAGE = Path(__file__).resolve().parents[3] / "docs" / "langchain.md"
OF_THE_FRAMEWORK = {"name", "tags", "metadata"}


def test_the_tables_name_every_field_with_its_default() -> None:
    rows = dict(
        re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    for kind in (SPScannerRetriever, SPScannerCompressor):
        for name, field in kind.model_fields.items():
            if name in OF_THE_FRAMEWORK:
                continue
            assert name in rows, name
            if field.default is not None and field.default is not PydanticUndefined:
                default = f'"{field.default}"' if isinstance(field.default, str) else str(field.default)
                assert rows[name].strip("`") == default, name
    assert set(rows) - {*SPScannerRetriever.model_fields} == set()
