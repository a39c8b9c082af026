"""The cache of texts and vectors.

It gives the same results as without it, is bounded, and harmless if it fails.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag import files
from spscanner_rag.apps.cache import ReadCache, cache_folder, user_cache
from spscanner_rag.apps.cache import read_cache as module
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.files import read

PAGE = """<h1>Treaty</h1><p>Anne signed it.</p>
<table><tr><th>Year</th><th>Ships</th></tr>
<tr><td>1911</td><td>3</td></tr></table><ul><li>One ship was lost.</li></ul>"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A file with headings and a table."""
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


@pytest.fixture
def kept(tmp_path: Path) -> ReadCache:
    """An empty cache."""
    return ReadCache(tmp_path / "new" / "cache")


def vectors(sentences: int = 3) -> SentenceVectors:
    return SentenceVectors.of(
        np.random.default_rng(sentences).normal(size=(sentences, 8))
    )


def entries(kept: ReadCache) -> list[Path]:
    return sorted(kept.folder.iterdir())


def fail(*_: object) -> Any:
    raise AssertionError


def fail_without_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_file_is_read_once(
    kept: ReadCache, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept.read(page) == read(page)
    assert kept.folder.stat().st_mode & 0o077 == 0
    copy = page.rename(page.with_name("other.html"))
    monkeypatch.setattr(module, "read_bytes", fail)
    again = kept.read(copy)
    monkeypatch.undo()
    assert again == read(copy)
    assert again.path == str(copy)
    assert again.headings(again.text.index("1911")) == ("Treaty",)


def test_a_pdf_keeps_its_boxes(
    kept: ReadCache, tmp_path: Path, pdf_of: Callable[..., bytes]
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_of([["Anne signed the treaty."], ["It rained."]]))
    first, again = kept.read(path), kept.read(path)
    assert again.boxes(0, 30) == first.boxes(0, 30) == read(path).boxes(0, 30)
    assert [box.page for box in first.boxes(0, 30)] == [1, 2]


def test_other_content_is_read_again(kept: ReadCache, page: Path) -> None:
    kept.read(page)
    kept.read(page.rename(page.with_suffix(".htm")))
    page.write_text(PAGE.replace("Anne", "Mary"))
    assert "Mary" in kept.read(page).text
    assert len(entries(kept)) == 3


@pytest.mark.parametrize("reader", ["reading.py", "readers/docx.py"])
def test_other_readers_between_two_versions_read_again(
    kept: ReadCache,
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: str,
) -> None:
    own = Path(shutil.copytree(Path(str(files.__file__)).parent, tmp_path / "files"))
    monkeypatch.setattr(files, "__file__", str(own / "__init__.py"))
    made = []
    for time in (2**31, 2**32):
        module._readers.cache_clear()
        os.utime(own / reader, (time, time))
        kept.read(page)
        made.append(len(entries(kept)))
    module._readers.cache_clear()
    assert made == [1, 2]


def test_plain_text_is_not_kept(kept: ReadCache, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rained.")
    assert kept.read(tmp_path / "a.txt").text == "It rained."
    assert not kept.folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"\0" * len(data),
        lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        lambda data: data[:12] + bytes([data[12] ^ 255] * 20) + data[32:],
    ],
    ids=["cut", "zeros", "flipped", "overwritten"],
)
def test_a_damaged_entry_is_made_again(
    kept: ReadCache, page: Path, damage: Callable[[bytes], bytes]
) -> None:
    kept.read(page)
    kept.put("encoder", "key", vectors())
    for entry in entries(kept):
        entry.write_bytes(damage(entry.read_bytes()))
    assert kept.read(page) == read(page)
    found = kept.get("encoder", "key")
    assert found is None or (found.rows == vectors().rows).all()


def test_vectors_are_those_of_one_encoder_and_text(kept: ReadCache) -> None:
    kept.put("encoder", "key", vectors())
    found = kept.get("encoder", "key")
    assert found is not None
    assert (found.rows == vectors().rows).all()
    assert (found.scales == vectors().scales).all()
    assert kept.get("another", "key") is None
    assert kept.get("encoder", "another") is None


def test_a_folder_that_cannot_be_written_keeps_nothing(
    tmp_path: Path, page: Path
) -> None:
    (tmp_path / "file").write_text("")
    kept = ReadCache(tmp_path / "file" / "cache")
    assert kept.read(page) == read(page)
    kept.put("encoder", "key", vectors())
    assert kept.get("encoder", "key") is None


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPSCANNER_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SPSCANNER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "spscanner"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", fail_without_home)
    assert user_cache() is None


def test_vectors_are_kept(
    kept: ReadCache, encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meaning() -> Meaning:
        made = Meaning(encoder, MeaningWeights())
        made.cache.store = kept
        return made

    sentences = ["the keeper wrote the date . ", "he signed the treaty . "]
    first = meaning().vectors(sentences)
    monkeypatch.setattr(encoder, "vectors_of_tokens", fail)
    assert (meaning().vectors(sentences).rows == first.rows).all()
    monkeypatch.undo()
    monkeypatch.setattr(kept, "get", lambda encoder, key: vectors(1))  # of another text
    assert (meaning().vectors(sentences).rows == first.rows).all()
