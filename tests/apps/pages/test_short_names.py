"""Names without the folders that all documents share; they stay as different as the paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.pages.short_names import short_names


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
def test_names(paths: list[str], names: list[str]) -> None:
    assert short_names(paths) == names


PATHS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join), max_size=5)


@given(PATHS)
def test_they_tell_documents_apart(paths: list[str]) -> None:
    names = short_names(paths)
    assert len(set(names)) == len(set(paths))
    assert all(path.endswith(name) for path, name in zip(paths, names, strict=True))
