"""DOCX: text, headings, tables and notes; broken files and bombs."""

import io
import zipfile
from collections.abc import Callable

import pytest

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers.docx import read_docx
from spscanner_rag.files.readers.docx_parts import MOST_XML_BYTES

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def row(*cells: str, marked: bool = False) -> str:
    properties = "<w:trPr><w:tblHeader/></w:trPr>" if marked else ""
    return f"<w:tr>{properties}{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in cells)}</w:tr>"


def test_a_contract(docx_of: Callable[..., bytes]) -> None:
    body = (
        paragraph("Terms", "H1")
        + paragraph("The parties agree.")
        + "<w:p><w:ins><w:r><w:t>Inserted. </w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>Gone.</w:delText></w:r></w:del><w:r><w:t>Kept.</w:t></w:r></w:p>"
        + f"<w:sdt><w:sdtContent>{paragraph('In a content control.')}</w:sdtContent></w:sdt>"
        + paragraph("Prices", "H2")
        + f"<w:tbl>{row('Item', 'Price', marked=True)}{row('Nut', '3 &amp; 4')}</w:tbl>"
    )
    found = read_docx("a.docx", docx_of(body))
    assert found.text == (
        "Terms\n\nThe parties agree.\n\nInserted. Kept.\n\nIn a content control.\n\n"
        "Prices\n\nItem | Price\nNut | 3 & 4"
    )
    shown = [(block.kind, found.text[block.start : block.end], block.level) for block in found.blocks]
    assert shown == [
        ("heading", "Terms", 1),
        ("heading", "Prices", 2),
        ("header", "Item | Price", 0),
        ("row", "Nut | 3 & 4", 0),
    ]


def test_lists_notes_text_boxes_and_hidden_text(docx_of: Callable[..., bytes]) -> None:
    def item(text: str, level: int, number: int) -> str:
        properties = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
        return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"

    box = f"<w:txbxContent>{paragraph('In a box.')}</w:txbxContent>"
    alternate = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    body = (
        f"{item('one', 0, 1)}{item('inner', 1, 1) * 2}{item('two', 0, 1)}{item('dash', 0, 2)}"
        f'<w:p xmlns:mc="{alternate}"><w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice>'
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r><w:r><w:t>Beside it.</w:t></w:r></w:p>"
        "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r>"
        "<w:r><w:t>Seen.</w:t><w:br/><w:t>Below.</w:t></w:r></w:p>"
        f"<w:tbl><w:tr><w:tc>{paragraph('a')}<w:tbl>{row('b', 'c')}</w:tbl></w:tc>"
        f"<w:tc>{paragraph('d')}</w:tc></w:tr></w:tbl>"
        + paragraph("A style that is based on a heading", "Own")
    )
    level = '<w:lvl w:ilvl="{}"><w:numFmt w:val="{}"/></w:lvl>'
    numbering = "".join(
        f'<w:abstractNum w:abstractNumId="{n}">{level.format(0, kind)}{level.format(1, "decimal")}</w:abstractNum>'
        for n, kind in ((7, "decimal"), (8, "bullet"))
    ) + "".join(f'<w:num w:numId="{n}"><w:abstractNumId w:val="{n + 6}"/></w:num>' for n in (1, 2))
    types = "".join(
        f'<Relationship Id="{kind}" Type="{OFFICE}/{kind}" Target="{kind}.xml"/>'
        for kind in ("styles", "numbering", "footnotes")
    )
    own = (
        '<w:style w:styleId="H1"><w:name w:val="Heading 1"/></w:style>'
        '<w:style w:styleId="Own"><w:basedOn w:val="H1"/>'
    )
    parts = {
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{types}</Relationships>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{WORD}">{numbering}</w:numbering>',
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{own}</w:style></w:styles>',
        "word/footnotes.xml": f'<w:footnotes xmlns:w="{WORD}">{paragraph("A note.")}</w:footnotes>',
    }
    found = read_docx("a.docx", docx_of(body, **{name: part.encode() for name, part in parts.items()}))
    assert found.text.split("\n\n") == [
        "1. one", "1.1. inner", "1.2. inner", "2. two", "- dash", "In a box.", "Beside it.", "Seen.\nBelow.",
        "a b c | d", "A style that is based on a heading", "A note.",
    ]  # fmt: skip
    assert [block.kind for block in found.blocks] == ["row", "heading"]


def test_another_name_of_the_main_part(docx_of: Callable[..., bytes]) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx_of(paragraph("Text.")))) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            part = old.read(name).replace(b"word/document.xml", b"word/document2.xml")
            new.writestr(name.replace("document.xml", "document2.xml"), part)
    assert read_docx("a.docx", made.getvalue()).text == "Text."


def test_a_broken_file_is_told_in_one_line(docx_of: Callable[..., bytes]) -> None:
    whole = docx_of(paragraph("Text."))
    for data in (whole[:200], whole[:-30], docx_of("<w:p>"), docx_of("", **{"word/document.xml": b"no"})):
        with pytest.raises(
            ValueError, match=r"^a\.docx: got a DOCX that cannot be read \(.*expected a whole"
        ) as told:
            read_docx("a.docx", data)
        assert "\n" not in str(told.value)


def test_a_bomb_is_refused_before_it_is_unpacked(docx_of: Callable[..., bytes]) -> None:
    data = docx_of(paragraph("a" * (MOST_XML_BYTES + 1)))
    assert len(data) < 200_000
    with pytest.raises(
        ValueError, match=r"a\.docx: got parts that unpack to 32 MiB; expected at most 32 MiB"
    ):
        read_docx("a.docx", data)


def test_a_bomb_that_lies_about_its_size_is_broken(docx_of: Callable[..., bytes]) -> None:
    data = bytearray(docx_of(paragraph("a" * 5_000_000)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    data = data.replace(size.to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    with pytest.raises(ValueError, match="cannot be read"):
        read_docx("a.docx", bytes(data))


def test_entities_do_not_grow(docx_of: Callable[..., bytes]) -> None:
    entities = '<!ENTITY a0 "aaaaaaaaaa">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    document = docx_of("")
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        empty = archive.read("word/document.xml").decode()
    laughing = f"<!DOCTYPE w [{entities}]>" + empty.replace("<w:body>", f"<w:body>{paragraph('&a9;')}")
    with pytest.raises(ValueError, match="cannot be read"):
        read_docx("a.docx", docx_of("", **{"word/document.xml": laughing.encode()}))
