"""Columns are read one after the other, rows of a table row by row."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.files.readers.pdf_columns import MOST_STRIPS, reading_order
from spscanner_rag.files.readers.pdf_lines import Strip

LEFT = [
    "The council met in the hall",
    "and voted to mend the bridge",
    "before the winter",
]
RIGHT = [
    "floods came. The treaty was",
    "signed by Anne Reed in the",
    "presence of the town.",
]


def strip(left: float, bottom: float, text: str, size: float = 10) -> Strip:
    """Words at a place; letters are half as wide as high."""
    words = tuple(text.split())
    boxes = ((0, 0, 1, 1),) * len(words)
    right = left + len(text) * size / 2
    return Strip(words, boxes, left, bottom, right, bottom + size, size, False)


def texts(flows: Sequence[Sequence[Strip]]) -> list[str]:
    return [" ".join(strip.words) for flow in flows for strip in flow]


def test_columns_drawn_line_by_line() -> None:
    strips = []
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        strips.append(strip(60, 700 - 13 * number, left))
        strips.append(strip(330, 700 - 13 * number, right))
    assert texts(reading_order(strips)) == LEFT + RIGHT
    title = strip(150, 740, "A title that stands across both of the columns")
    assert texts(reading_order([title, *strips]))[1:] == LEFT + RIGHT


def test_a_table_stays_in_rows() -> None:
    strips = []
    expected = []
    for number in range(6):
        for left, text in (
            (60, f"Valve {number}"),
            (250, "brass"),
            (400, f"{number}.5"),
        ):
            strips.append(strip(left, 700 - 13 * number, text))
            expected.append(text)
    assert texts(reading_order(strips)) == expected
    by_columns = strips[::3] + strips[1::3] + strips[2::3]
    assert texts(reading_order(by_columns)) == expected


def test_turned_letters_come_last() -> None:
    mark = strip(10, 400, "draft")._replace(turned=True)
    assert texts(reading_order([mark, strip(60, 700, "text")])) == ["text", "draft"]


def test_a_page_of_very_many_strips_stays_as_drawn() -> None:
    strips = [strip(n % 50, n % 70, str(n)) for n in range(MOST_STRIPS + 1)]
    assert reading_order(strips) == [strips]


STRIPS = st.lists(
    st.builds(
        strip,
        st.floats(0, 500),
        st.floats(0, 700),
        st.sampled_from(["a", "two words", "a line of six words here"]),
        st.floats(1, 30),
    ),
    max_size=40,
)


@given(STRIPS)
def test_no_strip_is_lost(strips: list[Strip]) -> None:
    ordered = [strip for flow in reading_order(strips) for strip in flow]
    assert sorted(map(str, ordered)) == sorted(map(str, strips))
