"""Letters of East Asian fonts that neither the file nor the machine has."""

import pytest

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

from spscanner_rag.files.readers.pdf_fonts import lend_font
from spscanner_rag.files.reading import read_bytes

LANGUAGES = {
    "GB1": ("GBK-EUC-H", "gbk", "钥匙保管人签了条约"),
    "CNS1": ("ETen-B5-H", "big5", "看守人簽了條約"),
    "Japan1": ("90ms-RKSJ-H", "shift_jis", "灯台守が条約に署名した"),
    "Korea1": ("KSCms-UHC-H", "cp949", "등대지기가조약에서명했다"),
}


def drawn_with(font: str, commands: str) -> bytes:
    """A page of drawing commands with one font, F."""
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        "/Resources<</Font<</F 5 0 R>>>>>>",
        f"<</Length {len(commands)}>>stream\n{commands}\nendstream",
        font,
    ]
    pdf = b"%PDF-1.7\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(f"{len(pdf):010} 00000 n \n")
        pdf += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = f"xref\n0 6\n0000000000 65535 f \n{''.join(places)}"
    trailer = f"trailer<</Size 6/Root 1 0 R>>\nstartxref\n{len(pdf)}\n%%EOF"
    return pdf + table.encode() + trailer.encode()


@pytest.mark.parametrize("ordering", LANGUAGES)
def test_letters_that_are_drawn_alone_are_read(ordering: str) -> None:
    cmap, encoding, text = LANGUAGES[ordering]
    drawn = []
    for number, letter in enumerate(text):
        code = letter.encode(encoding).hex()
        drawn.append(f"BT /F 12 Tf {72 + 12 * number} 700 Td <{code}> Tj ET")
    font = (
        f"<</Type/Font/Subtype/Type0/BaseFont/Own/Encoding/{cmap}/DescendantFonts[<<"
        "/Type/Font/Subtype/CIDFontType2/BaseFont/Own/CIDSystemInfo<</Registry(Adobe)"
        f"/Ordering({ordering})/Supplement 2>>/DW 1000/FontDescriptor<</Type"
        "/FontDescriptor/FontName/Own/Flags 4/FontBBox[0 -141 1000 859]/ItalicAngle 0"
        "/Ascent 859/Descent -141/CapHeight 683/StemV 80>>>>]>>"
    )
    document = read_bytes("a.pdf", drawn_with(font, "\n".join(drawn)))
    assert "".join(document.text.split()) == text


def test_the_font_is_lent_once() -> None:
    assert lend_font() is lend_font()
