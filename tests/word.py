"""Word documents, written as the XML of their parts."""

import io
import zipfile
from collections.abc import Sequence

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

HEADINGS = "".join(
    f'<w:style w:styleId="H{n}"><w:name w:val="heading {n}"/></w:style>' for n in (1, 2)
)
HEADING = '<w:pStyle w:val="H{}"/>'.format


def docx(
    body: str = "",
    *,
    relations: str = "",
    files: int = 0,
    main: str = "",
    **settings: str,
) -> bytes:
    """A document from the XML of its body or ``main`` part, and of ``settings``."""
    types = "".join(
        f'<Relationship Type="{OFFICE}/{kind}" Target="{kind}.xml"/>'
        for kind in settings
    )
    first = f'<Relationship Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    own = f'xmlns:w="{WORD}" xmlns:m="{MATH}"'
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": (
            f'<Relationships xmlns="{PACKAGE}">{relations}{first}</Relationships>'
        ),
        "word/_rels/document.xml.rels": (
            f'<Relationships xmlns="{PACKAGE}">{types}</Relationships>'
        ),
        "word/document.xml": (
            main or f"<w:document {own}><w:body>{body}</w:body></w:document>"
        ),
        **{
            f"word/{kind}.xml": f"<w:{kind} {own}>{part}</w:{kind}>"
            for kind, part in settings.items()
        },
        **{f"z{number}": "" for number in range(files)},
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def paragraph(text: str, properties: str = "", run: str = "") -> str:
    return (
        f"<w:p><w:pPr>{properties}</w:pPr><w:r>{run}<w:t"
        f" xml:space='preserve'>{text}</w:t></w:r></w:p>"
    )


def cell(text: str, properties: str = "", run: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text, run=run)}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    made = (each if each.startswith("<") else cell(each) for each in cells)
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(made)}</w:tr>"


def table(*rows: str, properties: str = "") -> str:
    return f"<w:tbl><w:tblPr>{properties}</w:tblPr>{''.join(rows)}</w:tbl>"


def level(number: int, text: str, form: str = "decimal", more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{number}">{more}<w:numFmt w:val="{form}"/><w:lvlText'
        f' w:val="{text}"/></w:lvl>'
    )


def a_list(*levels: str, overrides: Sequence[str] = ("",)) -> str:
    """One definition, and one list that uses it for each override, numbered from 1."""
    lists = "".join(
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="7"/>{override}</w:num>'
        for number, override in enumerate(overrides, start=1)
    )
    return (
        f'<w:abstractNum w:abstractNumId="7">{"".join(levels)}</w:abstractNum>{lists}'
    )


def item(text: str, at: int | str = 0, of: int = 1) -> str:
    return paragraph(
        text, f'<w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="{of}"/></w:numPr>'
    )
