"""A text in an entry comes back as it was, and what was not written is refused."""

import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.apps.cache import text_entries as module
from spscanner_rag.apps.cache.text_entries import content_of_text, text_of
from spscanner_rag.files.documents import PageStart, PlaceStart, TextFile
from spscanner_rag.text.blocks import Block

TEXT = "Treaty\nAnne signed it \ud800 \U0001f600."
DOCUMENT = TextFile(
    "a.pdf",
    TEXT,
    (Block(0, 6, "heading", None, 1, "Treaty"), Block(7, 20, "row", (0, 6))),
    (PageStart(0, 1, "i"), PageStart(7, 2, "2")),
    ("1 of 3 pages is broken",),
    np.array([[0, 6, 1, 2, 3, 4], [7, 11, 5, 6, 7, -8]], np.int32),
    (PlaceStart(0, "slide 1"),),
    {"from": "Anne"},
)
PARTS = json.loads(
    json.dumps(
        [
            TEXT,
            DOCUMENT.blocks,
            DOCUMENT.pages,
            DOCUMENT.notes,
            DOCUMENT.places,
            DOCUMENT.metadata,
        ]
    )
)
SIZES = struct.Struct("<QQ")


def packed(encoded: bytes, words: bytes = b"", stated: tuple[int, int] = ()) -> bytes:
    sizes = SIZES.pack(*(stated or (len(encoded), len(words))))
    return sizes + zlib.compress(encoded + words)


def test_a_text_comes_back() -> None:
    content = content_of_text(DOCUMENT)
    assert content is not None
    again = text_of("b.pdf", content)
    assert again is not None
    assert (again.path, again.text, again.blocks) == ("b.pdf", TEXT, DOCUMENT.blocks)
    assert (again.pages, again.notes) == (DOCUMENT.pages, DOCUMENT.notes)
    assert (again.places, again.metadata) == (DOCUMENT.places, DOCUMENT.metadata)
    assert again.words is not None
    assert DOCUMENT.words is not None
    assert again.words.dtype == np.int32
    assert (again.words == DOCUMENT.words).all()


@pytest.mark.parametrize("words", [None, np.empty((0, 6), np.int32)])
def test_no_words_are_not_an_empty_array(words: Any) -> None:
    content = content_of_text(TextFile("", "It rained.", words=words))
    assert content is not None
    again = text_of("", content)
    assert again is not None
    assert (again.words is None) == (words is None)


def test_what_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 99)
    assert content_of_text(DOCUMENT) is None
    monkeypatch.undo()
    monkeypatch.setattr(module, "MOST_VALUES", 5)
    assert content_of_text(DOCUMENT) is None


def changed(place: int, value: object) -> bytes:
    parts = list(PARTS)
    parts[place] = value
    return packed(json.dumps(parts).encode())


BLOCK = [0, 6, "heading", None, 1, "Treaty"]
FORGED = {
    "nothing": b"",
    "text": b"x" * 99,
    "zeros": bytes(99),
    "other sizes": packed(b"[]", stated=(3, 0)),
    "huge sizes": packed(b"[]", stated=(2**60, 2**60)),
    "a byte more": packed(json.dumps(PARTS).encode()) + b"x",
    "two streams": packed(json.dumps(PARTS).encode()) + zlib.compress(b"x"),
    "a bomb": packed(b" " * 2**24, stated=(2, 0)),
    "deep": packed(b"[" * 200_000 + b"]" * 200_000),
    "many lists": packed(b"[" + b"[]," * 2**22 + b"[]]"),
    "a huge number": packed(b"[" + b"9" * 5000 + b"]"),
    "one": packed(b"1"),
    "null": packed(b"null"),
    "too few": packed(json.dumps(PARTS[:-1]).encode()),
    "too many": packed(json.dumps([*PARTS, 1]).encode()),
    "a number as text": changed(0, 5),
    "blocks of numbers": changed(1, [[1]]),
    "a block outside": changed(1, [[0, 10**9, *BLOCK[2:]]]),
    "a negative block": changed(1, [[-5, -1, *BLOCK[2:]]]),
    "a block backwards": changed(1, [[6, 0, *BLOCK[2:]]]),
    "blocks out of order": changed(1, [[7, 8, *BLOCK[2:]], BLOCK]),
    "an unknown kind": changed(1, [[0, 6, "kind", None, 1, "Treaty"]]),
    "a title of numbers": changed(1, [[0, 6, "heading", None, 1, 5]]),
    "a header outside": changed(1, [[0, 6, "row", [0, 99], 0, ""]]),
    "a level in words": changed(1, [[0, 6, "heading", None, "1", ""]]),
    "true as a number": changed(1, [[True, 6, *BLOCK[2:]]]),
    "a page too short": changed(2, [[0]]),
    "a page far away": changed(2, [[10**9, 1, "1"]]),
    "pages out of order": changed(2, [[7, 1, "1"], [0, 2, "2"]]),
    "a page without a label": changed(2, [[0, 1, None]]),
    "notes as a number": changed(3, 5),
    "a note as a number": changed(3, [5]),
    "a place far away": changed(4, [[10**9, "slide 1"]]),
    "a place without a name": changed(4, [[0, None]]),
    "metadata as a list": changed(5, []),
    "metadata of lists": changed(5, {"from": []}),
    "words cut": packed(json.dumps(PARTS).encode(), bytes(25)),
    "words far away": packed(
        json.dumps(PARTS).encode(), np.full((2, 6), 10**9, "<i4").tobytes()
    ),
    "words out of order": packed(
        json.dumps(PARTS).encode(),
        np.array([[0] * 6, [5] * 6, [1] * 6], "<i4").tobytes(),
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_was_not_written_is_refused(name: str) -> None:
    assert text_of("a.html", FORGED[name]) is None


def test_the_parts_as_they_are_would_be_accepted() -> None:
    again = text_of("a.html", packed(json.dumps(PARTS).encode()))
    assert again is not None
    assert again.blocks == DOCUMENT.blocks


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data: bytes) -> None:
    assert text_of("a.html", data) is None
    assert text_of("a.html", packed(data)) is None
