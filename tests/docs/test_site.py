"""The documentation site has every page, and links that match the repository.

``docs/site/build.py`` itself runs in ``.ci/run``.
"""

import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.blocks import REPOSITORY

FOLDER = REPOSITORY / "docs" / "site"


@pytest.fixture(scope="module")
def build() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield importlib.import_module("build")
    for name in ("build", "links"):
        sys.modules.pop(name)


def test_every_page_is_in_the_navigation(build: ModuleType) -> None:
    config = tomllib.loads((FOLDER / "zensical.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    named = re.findall(r"[\w/-]+\.md", str(config["nav"]))
    pages = {page.name for page in (REPOSITORY / "docs").glob("*.md")} | set(
        build.PLACES.values()
    )
    pages |= {f"api/{page.name}" for page in (FOLDER / "api").glob("*.md")} | {"cli.md"}
    assert sorted(named) == sorted(pages)


def test_the_api_reference_names_what_exists() -> None:
    names = [
        name
        for page in (FOLDER / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)
    ]
    assert len(names) > 15
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_the_page_on_the_command_line_has_every_command(build: ModuleType) -> None:
    page = build.command_line_page()
    for name in ("scan", "compare", "eval", "train", "info"):
        assert f"## `spscanner {name}`" in page
    assert "* `scan`: Show the sentences of documents that answer a question.\n" in page
    assert page.count("```") % 2 == 0
    assert "\b" not in page


def test_links_stay_on_the_site(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "PAGES", tmp_path)
    page = REPOSITORY / "docs" / "training.md"
    places = {
        REPOSITORY / "README.md": "index.md",
        REPOSITORY / "docs" / "results.md": "results.md",
    }
    text = (
        "[a](../README.md#limits) [b](results.md)"
        " [c](../examples/training/default.toml) [d](../examples)"
        ' [e](https://x.example/y.md) [f](#here) <img src="result-page.png"><source'
        ' srcset="https://x.example/a">'
    )
    assert (
        build.relinked(text, page, tmp_path / "training.md", places)
        == "[a](index.md#limits) [b](results.md)"
        " [c](files/examples/training/default.toml) d [e](https://x.example/y.md)"
        ' [f](#here) <img src="files/docs/result-page.png"><source'
        ' srcset="https://x.example/a">'
    )
    assert (tmp_path / "files" / "examples" / "training" / "default.toml").is_file()


def test_broken_links_are_found(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    good = (
        '<a href="api/b.html#there"></a><a href="#top"></a><h1 id="top"></h1><a'
        ' href="https://x.example/"></a>'
    )
    bad = (
        '<a href="c.html"></a><a href="api/b.html#nowhere"></a><img'
        ' src="../../x.png"><a href="ftp://x.example"></a><a'
        ' href="https://localhost/"></a>'
    )
    (tmp_path / "a.html").write_text(good, encoding="utf-8")
    (tmp_path / "api" / "b.html").write_text(
        '<h2 id="there"></h2><a href="../a.html"></a>', encoding="utf-8"
    )
    assert build.broken_links(tmp_path) == []
    (tmp_path / "bad.html").write_text(bad, encoding="utf-8")
    assert build.broken_links(tmp_path) == [
        "bad.html: c.html: no such file",
        "bad.html: api/b.html#nowhere: no such heading",
        "bad.html: ../../x.png: outside the site",
        "bad.html: ftp://x.example: no address of another site",
        "bad.html: https://localhost/: no address of another site",
    ]
