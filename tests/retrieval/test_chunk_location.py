"""Chunks found in their source."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.retrieval.chunk_location import ChunkLocator

SOURCE = "The  well\r\nwas dry.\u3000The bell\n\nrang. The  well\nwas dry."


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("was dry.", None, (11, 19, True)),
        ("was dry.", 11, (11, 19, True)),
        ("was dry.", 12, (46, 54, True)),  # the next occurrence after a wrong offset
        ("was dry.", 999, (11, 19, True)),
        ("was dry.", -1, (11, 19, True)),
        ("The well was dry.", None, (0, 19, False)),
        ("The well was dry.", 3, (36, 54, False)),
        (" rang.\t", None, (30, 35, False)),
        ("Thewell", None, (0, 9, False)),
        ("The cat", None, None),
        ("", None, None),
        ("", 3, None),
        (" \n", 3, None),
    ],
)
def test_locate(
    text: str, start: int | None, expected: tuple[int, int, bool] | None
) -> None:
    found = ChunkLocator(SOURCE).locate(text, start)
    assert found == expected
    assert all(type(place) is not np.int64 for place in found or ())


def test_chunks_in_reading_order_stand_one_behind_the_other() -> None:
    locator = ChunkLocator(SOURCE)
    chunks = ["The well was dry.", "The bell rang.", "The well was dry.", "was dry."]
    assert [locator.locate(chunk) for chunk in chunks] == [
        (0, 19, False),
        (20, 35, False),
        (36, 54, False),
        (46, 54, True),
    ]
    rows = ChunkLocator("aaaa")
    assert [rows.locate("aa") for _ in range(4)] == [
        (0, 2, True),
        (1, 3, True),
        (2, 4, True),
        (0, 2, True),
    ]


def test_every_white_space_character_is_known() -> None:
    source = "a" + "".join(c for c in map(chr, range(0x110000)) if c.isspace()) + "b"
    assert ChunkLocator(source).locate("a b") == (0, len(source), False)
    assert isinstance(ChunkLocator(source)._visible[1], np.ndarray)


@given(
    st.text("ab ", min_size=20, max_size=200),
    st.text("ab ", min_size=20, max_size=120),
    st.data(),
)
def test_every_chunk_of_the_source_is_found(
    source: str, other: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(source)))
    chunk = source[start : data.draw(st.integers(start, len(source)))]
    for text in (chunk, other, " ".join(chunk)):
        found = ChunkLocator(source).locate(text)
        squeezed = "".join(text.split())
        assert (found is not None) == bool(
            squeezed and squeezed in "".join(source.split())
        )
