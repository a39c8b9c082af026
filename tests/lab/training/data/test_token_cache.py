import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from spscanner_rag.lab.training.data.token_cache import TokenCache, open_token_cache, place


@pytest.fixture
def texts(tmp_path: Path, corpus_file: Path) -> list[Path]:
    path = tmp_path / "walks.txt"
    path.write_text("The ship's bell rang twice.\n\x1e\nThen the rain began, 東京.\n", encoding="utf-8")
    return [path, corpus_file]


def test_the_cache_holds_every_document_in_order(
    tmp_path: Path, texts: list[Path], tiny_tokenizer: Tokenizer
) -> None:
    messages: list[str] = []
    cache = open_token_cache(texts, tiny_tokenizer, tmp_path / "tokens", messages.append)
    text = tiny_tokenizer.decode(cache.read(0, len(cache)).tolist(), skip_special_tokens=False)
    expected = ["The ship's bell rang twice.\n", "Then the rain began, 東京.\n"]
    expected += [json.loads(line)["text"] for line in texts[1].read_text().splitlines()]
    assert text == "".join(document + "\x1e" for document in expected)
    assert list(cache.tokens_by_source) == ["walks", f"{texts[1].parent.name}/train"]
    assert sum(cache.tokens_by_source.values()) == len(cache)
    first = sum(len(tiny_tokenizer.encode(document + "\x1e").ids) for document in expected[:2])
    assert cache.tokens_by_source["walks"] == first
    assert len(messages) == 2


def test_a_cache_is_written_once_and_for_its_files_and_tokenizer_only(
    tmp_path: Path, texts: list[Path], tiny_tokenizer: Tokenizer
) -> None:
    messages: list[str] = []  # one for each file that is tokenized

    def opened(files: list[Path], tokenizer: Tokenizer, key: str = "") -> int:
        """Files tokenized for this cache."""
        before = len(messages)
        open_token_cache(files, tokenizer, tmp_path / "tokens", messages.append, wanted_key=key)
        return len(messages) - before

    assert [opened(texts, tiny_tokenizer) for _ in range(2)] == [2, 0]
    assert opened(texts[:1], tiny_tokenizer) == 1
    assert opened(texts, tiny_tokenizer, "other") == 2
    other = Tokenizer.from_str(tiny_tokenizer.to_str())
    other.add_tokens(["ship"])
    assert opened(texts, other) == 2
    texts[0].write_text("Another text.", encoding="utf-8")
    assert opened(texts, tiny_tokenizer) == 2
    assert len({path.stem for path in (tmp_path / "tokens").iterdir()}) == 5


def test_a_killed_write_is_done_again(tmp_path: Path, texts: list[Path], tiny_tokenizer: Tokenizer) -> None:
    def killed(message: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_token_cache(texts, tiny_tokenizer, tmp_path / "tokens", killed)
    again = open_token_cache(texts, tiny_tokenizer, tmp_path / "tokens")
    fresh = open_token_cache(texts, tiny_tokenizer, tmp_path / "elsewhere")
    np.testing.assert_array_equal(again.read(0, len(again)), fresh.read(0, len(fresh)))


@pytest.mark.parametrize("damage", ["cut", "no counts", "empty counts", "other counts"])
def test_a_damaged_cache_is_told(
    damage: str, tmp_path: Path, texts: list[Path], tiny_tokenizer: Tokenizer
) -> None:
    folder = tmp_path / "tokens"
    open_token_cache(texts, tiny_tokenizer, folder)
    (path,), (counts,) = folder.glob("*.uint16"), folder.glob("*.json")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-2])
    elif damage == "no counts":
        counts.unlink()
    else:
        counts.write_text("" if damage == "empty counts" else '{"walks": 3}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"damaged, or not as long as .*; delete both") as caught:
        open_token_cache(texts, tiny_tokenizer, folder)
    assert str(caught.value).startswith(f"{path}: ")


def test_large_vocabularies_are_stored_whole(tmp_path: Path) -> None:
    vocabulary = {"\x1e": 0} | {f"w{i}": i for i in range(1, 70_000)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="\x1e"))
    (tmp_path / "a.txt").write_text("w69999")
    cache = open_token_cache([tmp_path / "a.txt"], tokenizer, tmp_path / "tokens")
    assert cache.read(0, 2).tolist() == [69_999, 0]


def test_no_text_is_refused(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    (tmp_path / "a.txt").write_text(" \n\x1e\n\n")
    with pytest.raises(ValueError, match=r"a\.txt: got no text to learn from"):
        open_token_cache([tmp_path / "a.txt"], tiny_tokenizer, tmp_path / "tokens")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> TokenCache:
    path = tmp_path_factory.mktemp("numbers") / "a.uint16"
    np.arange(1000, dtype=np.uint16).tofile(path)
    return TokenCache(path, {"a": 300, "empty": 0, "b": 690, "c": 10})


@given(st.integers(0, 10**12), st.integers(1, 1500), st.integers(0, 2**40))
def test_a_sequence_is_a_run_of_the_corpus(numbers: TokenCache, number: int, length: int, seed: int) -> None:
    sequence = numbers.sequence(number, length, seed)
    assert len(sequence) == min(length, 1000)
    np.testing.assert_array_equal(sequence, np.arange(sequence[0], sequence[0] + len(sequence)))
    np.testing.assert_array_equal(sequence, numbers.sequence(number, length, seed))


@given(st.integers(0, 10**9), st.integers(8, 300), st.integers(0, 2**40))
def test_any_run_of_examples_covers_the_corpus_evenly(first: int, count: int, seed: int) -> None:
    places = 10**9
    taken = np.sort([place(number, places, seed) for number in range(first, first + count)])
    around = np.append(np.diff(taken), taken[0] + places - taken[-1])
    mean = places / count
    assert 0.3 * mean < around.min()
    assert around.max() < 3 * mean
    assert taken[0] >= 0
    assert taken[-1] < places


def test_another_seed_takes_other_places() -> None:
    assert place(0, 10**9, 0) != place(0, 10**9, 1)


def test_a_spread_takes_from_every_file_within_its_bounds(numbers: TokenCache) -> None:
    found: dict[str, list[np.ndarray]] = {}
    for source, sequence in numbers.spread(100, 250):
        found.setdefault(source, []).append(sequence)
    assert {source: len(sequences) for source, sequences in found.items()} == {"a": 2, "b": 2, "c": 1}
    bounds = {"a": (0, 300), "b": (300, 990), "c": (990, 1000)}
    for source, sequences in found.items():
        begin, stop = bounds[source]
        assert sequences[0][0] == begin
        assert sequences[-1][-1] == stop - 1
