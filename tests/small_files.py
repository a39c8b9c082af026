"""Small files of several formats, written as the XML of their parts or byte by byte."""

import io
import re
import struct
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from hypothesis import strategies as st

from spscanner_rag.files.documents import TextFile
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter

PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
OPEN_DOCUMENT = "urn:oasis:names:tc:opendocument:xmlns"
NAMES = " ".join(
    f'xmlns:{name}="{OPEN_DOCUMENT}:{name}:1.0"'
    for name in ("office", "text", "table", "style", "manifest")
)
NAMES += f' xmlns:draw="{OPEN_DOCUMENT}:drawing:1.0"'


def zipped(parts: Mapping[str, str | bytes], *, stored: Sequence[str] = ()) -> bytes:
    """A ZIP archive with these parts."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            method = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), part, method)
    return content.getvalue()


def relations(*targets: tuple[str, str, str]) -> str:
    """The relationships (id, kind, target) of a part."""
    elements = [
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, kind, target in targets
    ]
    return f'<Relationships xmlns="{PACKAGE}">{"".join(elements)}</Relationships>'


def xlsx(
    sheets: Mapping[str, str],
    *,
    styles: str = "",
    states: Mapping[str, str] | None = None,
    parts: Mapping[str, str] | None = None,
) -> bytes:
    """A workbook from the XML of the rows of its sheets.

    ``states`` has the states of sheets, such as "hidden", ``parts`` further parts.
    """
    entries: list[str] = []
    targets: list[tuple[str, str, str]] = []
    content: dict[str, str | bytes] = {}
    for number, (name, rows) in enumerate(sheets.items(), start=1):
        state = (states or {}).get(name, "visible")
        entries.append(
            f"<sheet name={quoteattr(name)} sheetId='{number}' state='{state}'"
            f" r:id='s{number}'/>"
        )
        targets.append((f"s{number}", "worksheet", f"worksheets/sheet{number}.xml"))
        content[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{SHEET}"><sheetData>{rows}</sheetData></worksheet>'
        )
    targets.append(("style", "styles", "styles.xml"))
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(("r", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": (
                f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets>'
                f"{''.join(entries)}</sheets></workbook>"
            ),
            "xl/_rels/workbook.xml.rels": relations(*targets),
            "xl/styles.xml": f'<styleSheet xmlns="{SHEET}">{styles}</styleSheet>',
            **content,
            **(parts or {}),
        }
    )


def sheet_row(number: int, *values: str | float | None, style: int = 0) -> str:
    """A row of a sheet, whose values begin in column A."""
    cells: list[str] = []
    for column, value in enumerate(values):
        name = f"{chr(ord('A') + column)}{number}"
        if isinstance(value, str):
            cells.append(
                f'<c r="{name}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
            )
        elif value is not None:
            cells.append(f'<c r="{name}" s="{style}"><v>{value}</v></c>')
    return f'<row r="{number}">{"".join(cells)}</row>'


def ods(sheets: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    """A sheet of OpenDocument with texts as values."""
    tables: list[str] = []
    for name, rows in sheets.items():
        shown: list[str] = []
        for row in rows:
            cells = [
                '<table:table-cell office:value-type="string">'
                f"<text:p>{escape(text)}</text:p></table:table-cell>"
                for text in row
            ]
            shown.append(f"<table:table-row>{''.join(cells)}</table:table-row>")
        tables.append(
            f"<table:table table:name={quoteattr(name)}>{''.join(shown)}</table:table>"
        )
    body = f"<office:spreadsheet>{''.join(tables)}</office:spreadsheet>"
    return open_document("spreadsheet", body)


def odt(body: str, *, styles: str = "", kind: str = "text") -> bytes:
    """A text of OpenDocument from the XML of its body."""
    return open_document(kind, f"<office:{kind}>{body}</office:{kind}>", styles)


def open_document(kind: str, body: str, styles: str = "") -> bytes:
    """A document of OpenDocument from the XML of its body."""
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    return zipped(
        {
            "mimetype": media_type,
            "META-INF/manifest.xml": (
                f"<manifest:manifest {NAMES}>"
                f'<manifest:file-entry manifest:full-path="/"'
                f' manifest:media-type="{media_type}"/>'
                '<manifest:file-entry manifest:full-path="content.xml"'
                ' manifest:media-type="text/xml"/></manifest:manifest>'
            ),
            "styles.xml": (
                f"<office:document-styles {NAMES}>{styles}</office:document-styles>"
            ),
            "content.xml": (
                f"<office:document-content {NAMES}><office:body>{body}"
                "</office:body></office:document-content>"
            ),
        },
        stored=["mimetype"],
    )


def pptx(
    *slides: str,
    notes: Mapping[int, str] | None = None,
    hidden: Sequence[int] = (),
    parts: Mapping[str, str] | None = None,
) -> bytes:
    """A presentation from the XML of the shapes of its slides, counted from 1."""
    content: dict[str, str | bytes] = {}
    targets: list[tuple[str, str, str]] = []
    ids: list[str] = []
    for number, shapes in enumerate(slides, start=1):
        show = ' show="0"' if number in hidden else ""
        content[f"ppt/slides/slide{number}.xml"] = _slide("sld", shapes, show)
        targets.append((f"s{number}", "slide", f"slides/slide{number}.xml"))
        ids.append(f'<p:sldId id="{255 + number}" r:id="s{number}"/>')
        if number in (notes or {}):
            text = shape((notes or {})[number])
            content[f"ppt/notes/notes{number}.xml"] = _slide("notes", text)
            content[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
                ("n", "notesSlide", f"../notes/notes{number}.xml")
            )
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(("r", "officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": (
                f'<p:presentation xmlns:p="{SLIDE}" xmlns:r="{OFFICE}"><p:sldIdLst>'
                f"{''.join(ids)}</p:sldIdLst></p:presentation>"
            ),
            "ppt/_rels/presentation.xml.rels": relations(*targets),
            **content,
            **(parts or {}),
        }
    )


def _slide(name: str, shapes: str, attributes: str = "") -> str:
    return (
        f'<p:{name} xmlns:p="{SLIDE}" xmlns:a="{DRAWING}" xmlns:r="{OFFICE}"'
        f"{attributes}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{name}>"
    )


def shape(*paragraphs: str, kind: str = "body") -> str:
    """A shape of a slide with paragraphs."""
    texts = [f"<a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p>" for text in paragraphs]
    return (
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        f"<p:txBody>{''.join(texts)}</p:txBody></p:sp>"
    )


def epub(
    *chapters: str,
    titles: Sequence[str] = (),
    spine: Sequence[int] = (),
    parts: Mapping[str, str] | None = None,
) -> bytes:
    """A book from the XHTML of its chapters' bodies, counted from 1 in ``spine``."""
    order = list(spine) or list(range(1, len(chapters) + 1))
    items = [
        f'<item id="c{number}" href="c{number}.xhtml"'
        ' media-type="application/xhtml+xml"/>'
        for number in range(1, len(chapters) + 1)
    ]
    links = [
        f'<li><a href="c{number}.xhtml#top">{escape(title)}</a></li>'
        for number, title in enumerate(titles, start=1)
    ]
    if links:
        items.append(
            '<item id="nav" href="nav.xhtml" properties="nav"'
            ' media-type="application/xhtml+xml"/>'
        )
    references = [f'<itemref idref="c{number}"/>' for number in order]
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{}'
    page += "</body></html>"
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<container><rootfiles><rootfile full-path="book/book.opf"/>'
                "</rootfiles></container>"
            ),
            "book/book.opf": (
                "<package><metadata><title>The light</title></metadata>"
                f"<manifest>{''.join(items)}</manifest>"
                f"<spine>{''.join(references)}</spine></package>"
            ),
            "book/nav.xhtml": page.format(f"<nav><ol>{''.join(links)}</ol></nav>"),
            **{
                f"book/c{number}.xhtml": page.format(chapter)
                for number, chapter in enumerate(chapters, start=1)
            },
            **(parts or {}),
        },
        stored=["mimetype"],
    )


_FREE = 0xFFFFFFFF
_END = 0xFFFFFFFE
_FAT = 0xFFFFFFFD
_SECTOR = 512
_MINI = 64


def msg(
    subject: str = "",
    body: str = "",
    sender: str = "",
    *,
    attachments: Mapping[str, bytes] | None = None,
    html: bytes = b"",
) -> bytes:
    """A mail of Outlook."""
    root: dict[str, bytes | dict[str, bytes]] = {}
    properties = {0x0037: subject, 0x1000: body, 0x0C1A: sender}
    streams = {
        f"{pid:04X}001F": text.encode("utf-16-le")
        for pid, text in properties.items()
        if text
    }
    if html:
        streams["10130102"] = html
    files = list((attachments or {}).items())
    header = struct.pack("<8x4I8x", 0, len(files), 0, len(files))
    root |= _properties(header, streams)
    for number, (name, content) in enumerate(files):
        inner = {"3707001F": name.encode("utf-16-le"), "37010102": content}
        folder = f"__attach_version1.0_#{number:08X}"
        root[folder] = _properties(bytes(8), inner)
    return compound_file(root)


def _properties(header: bytes, streams: Mapping[str, bytes]) -> dict[str, bytes]:
    table = header
    found: dict[str, bytes] = {}
    for key, content in streams.items():
        kind, size = int(key[4:], 16), len(content)
        table += struct.pack("<HHIII", kind, int(key[:4], 16), 6, size, 0)
        found[f"__substg1.0_{key}"] = content
    return {**found, "__properties_version1.0": table}


def compound_file(root: Mapping[str, bytes | Mapping[str, bytes]]) -> bytes:
    """A compound file of streams and of folders of streams, which are all short."""
    entries: list[tuple[str, int, bytes, list[int]]] = [("Root Entry", 5, b"", [])]
    for name, content in root.items():
        number = len(entries)
        entries[0][3].append(number)
        if isinstance(content, bytes):
            entries.append((name, 2, content, []))
            continue
        entries.append((name, 1, b"", []))
        for inner_name, inner in content.items():
            entries[number][3].append(len(entries))
            entries.append((inner_name, 2, inner, []))
    mini = b""
    mini_table: list[int] = []
    starts: list[int] = []
    for _, _, content, _ in entries:
        starts.append(len(mini_table) if content else _END)
        sectors = -(-len(content) // _MINI)
        for _ in range(sectors):
            mini_table.append(len(mini_table) + 1)
        if sectors:
            mini_table[-1] = _END
        mini += content.ljust(sectors * _MINI, b"\0")
    assert max(len(content) for _, _, content, _ in entries) < 4096
    siblings = {
        child: (children[index + 1] if index + 1 < len(children) else _FREE)
        for _, _, _, children in entries
        for index, child in enumerate(children)
    }
    directory = b""
    for number, (name, kind, content, children) in enumerate(entries):
        written = (name + "\0").encode("utf-16-le")
        size, start = len(content), starts[number]
        directory += written.ljust(64, b"\0")
        directory += struct.pack("<HBB", len(written), kind, 1)
        child = children[0] if children else _FREE
        directory += struct.pack("<III", _FREE, siblings.get(number, _FREE), child)
        directory += bytes(36)
        if not number:
            size, start = len(mini), 0
        directory += struct.pack("<IQ", start, size)
    table = struct.pack(f"<{len(mini_table)}I", *mini_table)
    chains = [_padded(mini), _padded(directory), _padded(table, b"\xff")]
    fat: list[int] = []
    first: list[int] = []
    for chain in chains:
        sectors = len(chain) // _SECTOR
        first.append(len(fat))
        fat += [*range(len(fat) + 1, len(fat) + sectors), _END]
    fat_start = len(fat)
    fat_sectors = 1 + (len(fat) + 8) // 127
    fat += [_FAT] * fat_sectors
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack(
        "<IIIIIIIIII",
        0,
        fat_sectors,
        first[1],
        0,
        4096,
        first[2],
        len(chains[2]) // _SECTOR,
        _END,
        0,
        fat_start,
    )
    for number in range(1, 109):
        header += struct.pack(
            "<I", fat_start + number if number < fat_sectors else _FREE
        )
    written_fat = _padded(struct.pack(f"<{len(fat)}I", *fat), b"\xff")
    return header + b"".join(chains) + written_fat.ljust(fat_sectors * _SECTOR, b"\xff")


def _padded(content: bytes, filler: bytes = b"\0") -> bytes:
    return content.ljust(-(-max(1, len(content)) // _SECTOR) * _SECTOR, filler)


def words_read(document: TextFile) -> Counter[str]:
    """The words that the units of a document have, which are at least its text's."""
    units = segment_blocks(document.text, document.blocks, SentenceSegmenter().segment)
    words: Counter[str] = Counter()
    for unit in units:
        words.update(re.findall(r"\w+", unit.model_text))
    for place in document.places:
        assert 0 <= place.start < len(document.text)
    starts = [place.start for place in document.places]
    assert starts == sorted(starts)
    return words


def assert_all_read(document: TextFile, texts: Sequence[str]) -> None:
    """Each word of the texts is in a unit, as often as in the texts."""
    expected = Counter(re.findall(r"\w+", " ".join(texts)))
    missing = expected - words_read(document)
    assert not missing, missing


def texts_of_words(**sizes: int) -> st.SearchStrategy[list[str]]:
    """Lists of short texts, as a person may write them."""
    letters = st.characters(categories=["Lu", "Ll", "Nd"], exclude_characters="ſ")
    word = st.text(letters, min_size=1, max_size=8)
    text = st.lists(word, min_size=1, max_size=6).map(" ".join)
    return st.lists(text, **sizes)
