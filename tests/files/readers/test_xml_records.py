import pytest
from hypothesis import given, settings

from tests.small_files import assert_all_read, texts_of_words

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers.xml_records import read_xml

CATALOG = b"""<?xml version="1.0"?><catalog date="1811"><!-- why -->
<book id="b1"><title>Storm</title><author>Anne &amp; Bo</author></book>
<book id="b2"><title>Calm</title></book>
<chapter><p>The <b>keeper</b> signed it.</p><p>It rained.</p></chapter></catalog>"""


def test_records_and_paragraphs_have_paths() -> None:
    document = read_xml(CATALOG)
    assert document.text == (
        "catalog | date: 1811\nid: b1 | title: Storm | author: Anne & Bo\n"
        "id: b2 | title: Calm\n\nThe keeper signed it.\n\nIt rained."
    )
    where = document.place_name(document.text.index("Calm"))
    assert where == "/catalog/book[2]"
    assert document.place_name(len(document.text) - 1) == "/catalog/chapter/p[2]"
    assert document.notes == ("comments are left out (1)",)


@given(texts_of_words(min_size=1, max_size=5))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    fields = "".join(
        f"<f{number}>{text}</f{number}>" for number, text in enumerate(texts)
    )
    mixed = " ".join(f"{text} <b at='{text}'>{text}</b> {text}" for text in texts)
    items = "".join(f"<i>{text}</i>" for text in texts)
    source = f"<x><r>{fields}</r><m>{mixed}</m><l>{items}</l><e v='{texts[0]}'/></x>"
    document = read_xml(source.encode())
    assert_all_read(document, texts * 5 + texts[:1])
    note = f"attributes within paragraphs are left out ({len(texts)})"
    assert document.notes == (note,)


def test_entities_are_not_expanded() -> None:
    entities = [b'<!ENTITY a0 "lol">']
    for number in range(1, 12):
        name = b"&a%d;" % (number - 1)
        entities.append(b'<!ENTITY a%d "%s">' % (number, name * 10))
    laugh = b"<!DOCTYPE l [" + b"".join(entities) + b"]><l>&a11;</l>"
    with pytest.raises(ValueError, match="amplification"):
        read_xml(laugh)
    outside = b'<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><l>A &x; b.</l>'
    assert "root" not in read_xml(outside).text


@pytest.mark.parametrize("data", [b"<a>" * 10**5, b"<a><b></a>", b"<a", b"no"])
def test_what_is_deep_or_broken_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="XML that cannot be read"):
        read_xml(data)
