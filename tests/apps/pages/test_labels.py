"""Short labels of retrievers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.pages.labels import short_labels


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("scanner", "scanner"),
        ("scanner:/home/me/runs/best", "scanner:best"),
        ("scanner:runs/best/", "scanner:best"),
        ("scanner:C:\\runs\\best", "scanner:best"),
        ("dense:org/model (chunk)", "dense:model (chunk)"),
        ("scanner:runs/best/, chunks", "scanner:best, chunks"),
        ("hybrid:bm25+dense:org/model", "hybrid:bm25+dense:model"),
        ("a plain/name", "a plain/name"),
    ],
)
def test_a_path_is_shortened_to_its_last_folder(name: str, label: str) -> None:
    assert short_labels([name, "other"]) == [label, "other"]


@given(
    st.lists(st.sampled_from(["scanner:a/b", "scanner:c/b", "scanner:b", "bm25", "dense:x/y"]), unique=True)
)
def test_no_two_labels_are_the_same(names: list[str]) -> None:
    assert len(set(short_labels(names))) == len(names)
