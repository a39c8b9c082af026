"""PDFs with letters at given places."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest

Place = tuple[Any, ...]
"""Left edge, base line, text and, where it is not 10, the size; negative if bold."""


@pytest.fixture(scope="session")
def drawn_pdf() -> Callable[[Sequence[Sequence[Place]]], bytes]:
    """Makes a PDF from pages of texts at places, drawn in the order given."""
    pytest.importorskip("pypdf")

    def drawn_pdf(pages: Sequence[Sequence[Place]]) -> bytes:
        from pypdf import PdfWriter
        from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

        writer = PdfWriter()
        fonts = DictionaryObject()
        for key, font_name in (("/F1", "/Helvetica"), ("/F2", "/Helvetica-Bold")):
            font = DictionaryObject()
            font[NameObject("/Type")] = NameObject("/Font")
            font[NameObject("/Subtype")] = NameObject("/Type1")
            font[NameObject("/BaseFont")] = NameObject(font_name)
            font[NameObject("/Encoding")] = NameObject("/WinAnsiEncoding")
            fonts[NameObject(key)] = writer._add_object(font)
        for places in pages:
            page = writer.add_blank_page(width=595, height=842)
            resources = DictionaryObject({NameObject("/Font"): fonts})
            page[NameObject("/Resources")] = resources
            drawn = ""
            for left, base, text, *sizes in places:
                size = sizes[0] if sizes else 10
                font_key = "/F2" if size < 0 else "/F1"
                drawn += (
                    f"BT {font_key} {abs(size)} Tf {left} {base} Td ({text}) Tj ET\n"
                )
            stream = DecodedStreamObject()
            stream.set_data(drawn.encode("cp1252"))
            page[NameObject("/Contents")] = writer._add_object(stream)
        file = io.BytesIO()
        writer.write(file)
        return file.getvalue()

    return drawn_pdf
