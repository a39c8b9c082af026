"""Page numbers in metadata."""

import pytest

from spscanner_rag.retrieval import page_number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((3, 3.0), (0, 0.0), (2.5, 2.5), ("7", 7.0), (" 12 ", 12.0), ("3.5", 3.5)),
        *(
            (True, None),
            (False, None),
            (None, None),
            ("iv", None),
            ("", None),
            ("1-2", None),
        ),
        *((float("nan"), None), (float("inf"), None), ("9" * 400, None), ([1], None)),
    ],
)
def test_page_number(value: object, number: float | None) -> None:
    assert page_number({"page": value}, ["page"]) == number
