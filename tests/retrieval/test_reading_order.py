"""The order of pieces of one source: by offset, by link, as they come."""

import pytest

from spscanner_rag.retrieval import Piece
from spscanner_rag.retrieval.reading_order import in_reading_order

SOURCE = "doc"


def at(
    key: str,
    start: int | None = None,
    previous: str | None = None,
    following: str | None = None,
) -> Piece:
    return Piece(
        text="", key=key, source=SOURCE, start=start, previous=previous, next=following
    )


def order(*pieces: Piece) -> list[str]:
    return [pieces[number].key for number in in_reading_order(dict(enumerate(pieces)))]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], ""),
        ([at("a", 5), at("b", 0), at("c", 5)], "bac"),  # equal ones in the given order
        ([at("c", previous="b"), at("b", previous="a"), at("a")], "abc"),
        ([at("x"), at("b", previous="a"), at("y"), at("a")], "xaby"),
        (
            [at("b", following="x"), at("a", following="b"), at("c", previous="gone")],
            "abc",
        ),
        ([at("c", 90), at("b", previous="a"), at("a", 10)], "abc"),
        ([at("x"), at("c", 90, previous="b"), at("b"), at("a", 10)], "abcx"),
        (
            [at("b", 50), at("a", 9, previous="b"), at("u", previous="b")],
            "abu",
        ),  # offsets before links
        (
            [
                at("a", 0, following="u"),
                at("u", following="c"),
                at("c", 50),
                at("b", 25),
            ],
            "aubc",
        ),
        (
            [at("a", following="b"), at("b", following="c"), at("c", following="a")],
            "abc",
        ),  # a circle
        (
            [at("a", following="b"), at("b", following="c"), at("c", following="b")],
            "abc",
        ),
        ([at("a", following="c"), at("b", following="c"), at("c")], "acb"),
        ([at("k", 7), at("k"), at("k", following="k")], "kkk"),
    ],
)
def test_order(pieces: list[Piece], expected: str) -> None:
    assert order(*pieces) == list(expected)
