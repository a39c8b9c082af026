"""Token ids of parts equal those of the whole text."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    models,
)

from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.tokenization import (
    tokenize_units,
)
from spscanner_rag.text.tokenization_in_parts import LONGEST_PART
from tests.text.hard_texts import any_text
from tests.text.tokenizers_of_all_kinds import KINDS, PROSE, as_units


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return KINDS[request.param]()


class Watched:
    """A tokenizer that remembers how much text it was given at once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.lengths: list[int] = []

    def encode(self, text: str, **options: Any) -> Any:
        self.lengths.append(len(text))
        return self._tokenizer.encode(text, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


@settings(max_examples=40)
@given(text=any_text, part_characters=st.sampled_from([1, 10, 60, 200]))
def test_pieces_give_the_ids_of_the_whole(
    tokenizer: Tokenizer, text: str, part_characters: int
) -> None:
    whole = tokenizer.encode(replace_surrogates(text), add_special_tokens=False)
    if not whole.ids:
        return
    tokens = tokenize_units(tokenizer, as_units(text), "contained", part_characters)
    assert tokens.input_ids.tolist() == whole.ids
    assert (
        list(zip(tokens.token_starts.tolist(), tokens.token_ends.tolist(), strict=True))
        == whole.offsets
    )
    assert (
        tokens.input_ids.dtype
        == tokens.token_starts.dtype
        == tokens.token_ends.dtype
        == np.int32
    )
    assert tokens.unit_ends.dtype == np.int64


ENGLISH, LINES, JAPANESE = (
    PROSE * 100,
    PROSE.replace(" ", "\n") * 100,
    "東京は大きい。そう、大きい！" * 1000,
)


WITHOUT_SPACES = ["gpt2", "gpt-neox", "cl100k", "nfkc, lower case", "wordpiece"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *[
            (kind, ENGLISH)
            for kind in (
                *WITHOUT_SPACES,
                "gpt2 with a prefix space, trimmed",
                "unigram",
            )
        ],
        *[(kind, text) for kind in WITHOUT_SPACES for text in (LINES, JAPANESE)],
    ],
)
def test_ordinary_texts_are_never_tokenized_in_one_go(kind: str, text: str) -> None:
    watched: Any = Watched(KINDS[kind]())
    tokens = tokenize_units(watched, as_units(text), "contained", 1000)
    assert max(watched.lengths) <= 2200
    assert sum(watched.lengths) <= 2 * len(text)
    assert (
        tokens.input_ids.tolist() == watched.encode(text, add_special_tokens=False).ids
    )


@pytest.mark.parametrize("kind", WITHOUT_SPACES)
@pytest.mark.parametrize("run", ["a", "🇩🇪", "😀", "漢字", "\ud800", "\u0301", "#"])
def test_a_text_without_words_is_cut_anyway(kind: str, run: str) -> None:
    watched: Any = Watched(KINDS[kind]())
    text = (run * 110_000)[:110_000] + " The end of it."
    calls: list[int] = []
    tokens = tokenize_units(
        watched, as_units(text), "contained", between_parts=lambda: calls.append(0)
    )
    assert max(watched.lengths) <= LONGEST_PART + 200
    assert sum(watched.lengths) <= 2 * len(text)
    assert len(calls) >= 2
    starts, ends = tokens.token_starts, tokens.token_ends
    assert (starts[1:] >= starts[:-1]).all()
    assert (ends[1:] >= ends[:-1]).all()
    assert (starts <= ends).all()
    assert ends[-1] == len(text)
    if kind == "gpt2":  # every character is in a token
        assert starts[0] == 0
        assert (starts[1:] <= ends[:-1]).all()
    whole = watched.encode(replace_surrogates(text[:40_000]), add_special_tokens=False)
    before = int(np.searchsorted(ends, 39_900)) if kind != "wordpiece" else 0
    assert tokens.input_ids[:before].tolist() == whole.ids[:before]


def test_random_tokenizers_are_not_asked_twice() -> None:
    tokenizer = KINDS["gpt2"]()
    assert isinstance(tokenizer.model, models.BPE)
    tokenizer.model.dropout = 0.5
    watched: Any = Watched(tokenizer)
    tokenize_units(watched, as_units(PROSE * 10), "contained", 100)
    assert watched.lengths == [len(PROSE) * 10]


MEASURE = """
import resource, sys
from pathlib import Path
from tokenizers import Tokenizer
from spscanner_rag.checkpoint import ScannerSettings
from spscanner_rag.scan.reading import Reading
from spscanner_rag.text.segmentation import SentenceSegmenter

tokenizer = Tokenizer.from_file(sys.argv[1])
text = Path(sys.argv[2]).read_text(encoding="utf-8")

def read(characters):
    document = (text * (characters // len(text) + 1))[:characters]
    settings = ScannerSettings(match=True, prior=True)
    read = Reading(tokenizer, SentenceSegmenter(), settings)
    asked = read.pair("Who is it?", read.index_text(document)).sequence()
    assert len(asked.input_ids) > characters / 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(read(30_000), read(3_000_000))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="ru_maxrss counts kilobytes on Linux only"
)
@pytest.mark.parametrize(
    ("run", "megabytes"), [(None, 150), ("🇩🇪", 350), ("漢字", 350)]
)
def test_three_million_characters_take_little_memory(
    tiny_tokenizer: Tokenizer, tmp_path: Path, run: str | None, megabytes: int
) -> None:
    document = Path(__file__).parents[2] / "examples" / "data" / "persuasion.txt"
    if run is not None:
        document = tmp_path / "run.txt"
        document.write_text(run * 10_000, encoding="utf-8")
    file = tmp_path / "tokenizer.json"
    tiny_tokenizer.save(str(file))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, file, document],
        check=True,
        capture_output=True,
        text=True,
    )
    small, large = map(int, done.stdout.split())
    assert large - small < megabytes * 1024
