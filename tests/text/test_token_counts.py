"""Token counters: a callable, or a tiktoken encoding without a network."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag import ScanResult
from spscanner_rag.text import token_counts
from spscanner_rag.text.token_counts import check_counter, resolve_counter

O200K = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


def test_a_callable_is_asked_for_each_text() -> None:
    counter = resolve_counter(lambda text: np.int64(len(text)))  # type: ignore[return-value,arg-type]
    assert counter("four") == 4
    assert type(counter("four")) is int
    assert counter("") == 0


@pytest.mark.parametrize("answer", [-1, 2.0, True, None, [1, 2]])
def test_an_answer_that_is_no_count_is_refused(answer: Any) -> None:
    counter = resolve_counter(lambda text: answer)
    with pytest.raises(
        ValueError,
        match=r"for a text of 4 characters; expected an integer of at least 0",
    ):
        counter("four")


def test_what_is_no_counter_is_refused() -> None:
    with pytest.raises(ValueError, match="count_tokens: got list; expected a callable"):
        check_counter(["o200k_base"])
    with pytest.raises(
        ValueError,
        match=r"count_tokens: got 'gpt-4'.*use one of .*cl100k_base.*o200k_base",
    ):
        resolve_counter("gpt-4")
    check_counter(None)
    check_counter(len)
    check_counter("o200k_base")


@pytest.fixture
def no_tiktoken_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No tiktoken cache on disk, and no encoding that is already loaded."""
    if token_counts._llama_index_copy(O200K) is None:
        pytest.skip(
            "llama-index-core, which bundles tiktoken's files, is not installed"
        )
    import tiktoken.registry

    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})


@pytest.mark.usefixtures("no_tiktoken_cache")
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_encodings_load_without_a_network(name: str) -> None:
    before = dict(os.environ)
    counter = resolve_counter(name)
    assert counter("Hello world") == 2
    assert counter("") == 0
    assert dict(os.environ) == before


@pytest.mark.usefixtures("no_tiktoken_cache")
def test_special_tokens_are_counted_as_text() -> None:
    result = ScanResult("q", "Anne signed it. <|endoftext|>", [0, 16], [15, 29], [1, 2])  # type: ignore[arg-type]
    counter = resolve_counter("cl100k_base")
    assert counter("<|endoftext|>") > 1
    assert counter("\ud800") > 0
    within = result.select(
        max_tokens=counter("<|endoftext|>") - 1, count_tokens="cl100k_base"
    )
    assert [passage.text for passage in within] == ["Anne signed it."]


@pytest.mark.usefixtures("no_tiktoken_cache")
def test_no_encoding_is_fetched_where_the_environment_forbids_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import requests
    import tiktoken.load

    asked: list[str] = []

    def get(address: str) -> None:
        asked.append(address)
        raise ConnectionError

    monkeypatch.setattr(requests, "get", get)
    read_file = tiktoken.load.read_file
    with pytest.raises(
        OSError, match=r"p50k_base.*could not be fetched \(HF_HUB_OFFLINE is set\)"
    ):
        resolve_counter("p50k_base")
    assert asked == []
    assert tiktoken.load.read_file is read_file
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("TRANSFORMERS_OFFLINE")
    with pytest.raises(
        OSError, match=r"could not be fetched.*TIKTOKEN_CACHE_DIR .*or pass a callable"
    ):
        resolve_counter("p50k_base")
    assert asked


def test_looking_for_the_bundle_imports_nothing() -> None:
    loaded = set(sys.modules)
    token_counts._llama_index_copy(O200K)
    assert not {
        name for name in set(sys.modules) - loaded if name.startswith("llama_index")
    }
