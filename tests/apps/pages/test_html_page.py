"""Short labels of retrievers and documents, which remain as distinct as the names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.pages.html_page import short_labels, short_names


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
    st.lists(
        st.sampled_from(
            ["scanner:a/b", "scanner:c/b", "scanner:b", "bm25", "dense:x/y"]
        ),
        unique=True,
    )
)
def test_no_two_labels_are_the_same(names: list[str]) -> None:
    assert len(set(short_labels(names))) == len(names)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a/b/c.md"], ["/a/b/c.md"]),
        (["/a/b/c.md", "/a/b/d.md"], ["c.md", "d.md"]),
        (["/a/b/c.md", "/a/d.md"], ["b/c.md", "d.md"]),
        (["a/c.md", "b/c.md"], ["a/c.md", "b/c.md"]),
        (["c.md", "/a/c.md"], ["c.md", "/a/c.md"]),
        (["-", "/a/c.md"], ["standard input", "/a/c.md"]),
        (["a/c.md", "a/c.md"], ["a/c.md", "a/c.md"]),
        ([], []),
    ],
)
def test_a_document_loses_the_folders_that_all_share(
    paths: list[str], names: list[str]
) -> None:
    assert short_names(paths) == names


PATHS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join), max_size=5
)


@given(PATHS)
def test_names_of_documents_stay_different(paths: list[str]) -> None:
    names = short_names(paths)
    assert len(set(names)) == len(set(paths))
    assert all(path.endswith(name) for path, name in zip(paths, names, strict=True))
