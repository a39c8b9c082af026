"""Token ids of pieces equal those of the whole text.

Unit ends by both rules, failing tokenizers, and memory.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from spscanner_rag.scan.prepare import QueryOnText
from spscanner_rag.text.encoding import encode, token_counter
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.tokenization import (
    TokenizedText,
    encode_question,
    tokenize_units,
)
from spscanner_rag.text.tokenization_in_parts import LONGEST_PART
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import average_logits, window_ranges

PROSE = """The keeper of the lighthouse wrote the date in his book; he signed the treaty on 14 May 1911.
"Who signed it?" she asked. Nobody answered! Dr. Smith's report, of 400 pages, said:
the harbour must be widened. Why did they leave the island? Because the well was dry.
"""
HARD_PARTS = [
    "The report ", "of the ", "Dr. S", "don't ", "1234567 ", "3.14", "x", "naïve ", "e\u0301 ", "(so) ",
    "...", "!!\n",
    " ", "  ", " " * 12, " " * 70, "\t", "\n", "\n\n", "\r\n", "\xa0", "\u2028", "\u3000", "\u200b",
    "\u200d", "\u202e",
    "\x00", "\ud800", "😀", "👩\u200d👩\u200d👧", "🇩🇪", "שלום ", "東京。", "ｶﾞ", "각", "ᄀ\u1161", "\u0301" * 9,
    "y" * 90,
    "<mask>", "<|endoftext|>", "a long added token " * 6, "ＡＢ", "İ", "Σας ",
]  # fmt: skip
# Some longer than the 64 characters that are read after a cut.
RUNS = [
    "the word ", "x", "7", " ", "\n", "\x00", "\u200b", "\u0301", "東", "a,", "x y, ", ". ", "<mask>", "é.",
]  # fmt: skip
any_text = st.one_of(
    st.text(st.characters(codec=None), max_size=80),
    st.lists(st.sampled_from(HARD_PARTS), max_size=80).map("".join),
    st.lists(
        st.tuples(st.sampled_from(RUNS), st.sampled_from([1, 2, 40, 70, 130])),
        max_size=12,
    ).map(lambda runs: "".join(run * count for run, count in runs)),
)

CL100K = "|".join(
    [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?\p{L}+", r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
    ]
)  # fmt: skip
byte_level = pre_tokenizers.ByteLevel


def split_by(pattern: str) -> pre_tokenizers.PreTokenizer:
    parts = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence(
        [parts, byte_level(add_prefix_space=False, use_regex=False)]
    )


def train(
    model: Any, trainer: Any, pre_tokenizer: Any, normalizer: Any = None
) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator([PROSE], trainer)
    return tokenizer


def bpe(pre_tokenizer: Any, normalizer: Any = None, model: Any = None) -> Tokenizer:
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=byte_level.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    return train(model or models.BPE(), trainer, pre_tokenizer, normalizer)


def gpt_neox() -> Tokenizer:
    """Like GPT-NeoX's: NFC, runs of spaces as added tokens, offsets without white space."""
    tokenizer = bpe(byte_level(add_prefix_space=False), normalizers.NFC())
    tokenizer.add_tokens(
        [AddedToken(" " * width, normalized=True) for width in range(2, 25)]
    )
    tokenizer.post_processor = processors.ByteLevel(
        trim_offsets=True, add_prefix_space=False
    )
    return tokenizer


def trimmed_offsets() -> Tokenizer:
    """Like RoBERTa's: a text's first space belongs to its first token, any other space to none."""
    tokenizer = bpe(byte_level(add_prefix_space=True))
    tokenizer.post_processor = processors.ByteLevel(
        trim_offsets=True, add_prefix_space=True
    )
    return tokenizer


def greedy_added_tokens() -> Tokenizer:
    tokenizer = bpe(byte_level(add_prefix_space=False))
    tokenizer.add_tokens(
        [
            AddedToken("<mask>", lstrip=True, rstrip=True, special=True),
            AddedToken("of the", single_word=True),
            AddedToken("a long added token " * 6),
            AddedToken("Dr. S", normalized=False),
        ]
    )
    return tokenizer


def word_piece() -> Tokenizer:
    trainer = trainers.WordPieceTrainer(
        vocab_size=300, special_tokens=["[UNK]"], show_progress=False
    )
    model = models.WordPiece(unk_token="[UNK]")
    tokenizer = train(
        model, trainer, pre_tokenizers.BertPreTokenizer(), normalizers.BertNormalizer()
    )
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


def unigram(**options: Any) -> Tokenizer:
    trainer = trainers.UnigramTrainer(
        vocab_size=200, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    return train(
        models.Unigram(),
        trainer,
        pre_tokenizers.Metaspace(**options),
        normalizers.NFKC(),
    )


def without_words() -> Tokenizer:
    tokenizer = bpe(byte_level(add_prefix_space=False))
    tokenizer.pre_tokenizer = None
    return tokenizer


def digits_from_the_right(width: int) -> Tokenizer:
    """Digits in groups counted from the end of their run."""
    pattern = rf"\p{{N}}{{1,{width}}}(?=(?:\p{{N}}{{{width}}})*(?:\P{{N}}|$))"
    groups = pre_tokenizers.Split(Regex(pattern), "isolated")
    return bpe(pre_tokenizers.Sequence([groups, byte_level(add_prefix_space=False)]))


def pairs(pre_tokenizer: Any) -> Tokenizer:
    """Tokens of two characters that begin at odd or even places, depending on the end of the word."""
    vocabulary = [("<unk>", 0.0), ("▁", -1.0), ("▁x", -1.0), ("xx", -1.0), ("x", -10.0)]
    vocabulary += [("y,", -1.0), (",y", -0.99), ("y", -5.0), (",", -5.0)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, 0))
    tokenizer.pre_tokenizer = pre_tokenizer
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": lambda: bpe(byte_level(add_prefix_space=False)),
    "gpt2 with a prefix space": lambda: bpe(byte_level(add_prefix_space=True)),
    "gpt-neox": gpt_neox,
    "cl100k": lambda: bpe(split_by(CL100K)),
    "five characters at a time": lambda: bpe(split_by(r"[\s\S]{1,5}")),
    "behind, ahead": lambda: bpe(
        split_by(r"(?<=a)\s|\b[A-Z]\w*|(?<=\. )\w+|\w+(?=\s+\d)|\w+| +|[^\w ]")
    ),
    "nfkc, lower case": lambda: bpe(
        byte_level(add_prefix_space=False),
        normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]),
    ),
    "nfd, stripped": lambda: bpe(
        byte_level(add_prefix_space=False),
        normalizers.Sequence([normalizers.NFD(), normalizers.Strip()]),
    ),
    "greedy added tokens": greedy_added_tokens,
    "gpt2 with a prefix space, trimmed": trimmed_offsets,
    "wordpiece": word_piece,
    "unigram": unigram,
    "unigram, first word marked": lambda: unigram(prepend_scheme="first"),
    "digits in threes": lambda: digits_from_the_right(3),
    "digits in twos": lambda: digits_from_the_right(2),
    "pairs": lambda: pairs(pre_tokenizers.WhitespaceSplit()),
    "pairs, marked": lambda: pairs(pre_tokenizers.Metaspace()),
    "unigram, not split": lambda: unigram(split=False),
    "no words": without_words,
}


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


def as_units(*texts: str) -> list[Unit]:
    """Units whose model_text is given; their spans do not matter here."""
    return [Unit(0, 1, text) for text in texts]


@settings(max_examples=80)
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
    text = (run * 150_000)[:150_000] + " The end of it."
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


@given(text=any_text)
def test_the_last_character_is_in_the_token(
    tiny_tokenizer: Tokenizer, text: str
) -> None:
    units = SentenceSegmenter(max_characters=60).segment(text)
    tokens = tokenize_units(tiny_tokenizer, units, "last_character", 50)
    assert len(tokens.unit_ends) == len(units)
    for unit, end in zip(units, tokens.unit_ends, strict=True):
        assert tokens.token_starts[end] < unit.end <= tokens.token_ends[end]
        # the last of the tokens that share a character of several bytes
        assert (
            end + 1 == len(tokens.token_starts)
            or tokens.token_starts[end + 1] >= unit.end
        )


@given(texts=st.lists(any_text.filter(bool), max_size=12))
def test_the_last_token_within_the_unit(
    tiny_tokenizer: Tokenizer, texts: list[str]
) -> None:
    tokens = tokenize_units(tiny_tokenizer, as_units(*texts), "contained", 50)
    stop, before = 0, 0
    for text, found in zip(texts, tokens.unit_ends.tolist(), strict=True):
        stop += len(text)
        inside = [
            index for index, end in enumerate(tokens.token_ends.tolist()) if end <= stop
        ]
        assert found == max(before, inside[-1] if inside else 0)
        before = found


def test_the_two_rules_differ_where_a_token_straddles_the_boundary() -> None:
    words = {"one": 0, ".Two": 1, "three": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="one"))
    words_of_it = pre_tokenizers.Split(Regex(r"\.?\w+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), words_of_it]
    )
    units = as_units("one.", "Two", " three")
    assert tokenize_units(tokenizer, units, "contained").unit_ends.tolist() == [0, 1, 2]
    assert tokenize_units(tokenizer, units, "last_character").unit_ends.tolist() == [
        1,
        1,
        2,
    ]


def test_units_without_a_visible_character_end_within_themselves(
    tiny_tokenizer: Tokenizer,
) -> None:
    blank = tokenize_units(
        tiny_tokenizer, as_units("ab", "\n\n", "cd"), "last_character"
    )
    assert blank.token_starts[blank.unit_ends].tolist() == [1, 2, 5]
    empty = tokenize_units(
        tiny_tokenizer, as_units("", "ab", "", "xy", ""), "last_character"
    )
    assert empty.token_starts[empty.unit_ends].tolist() == [0, 1, 1, 3, 3]


def test_a_question_is_stripped_and_ends_its_line(tiny_tokenizer: Tokenizer) -> None:
    found = encode_question(tiny_tokenizer, " \tWho signed \ud800 it?\n\n")[0]
    assert found.dtype == np.int32
    assert found.tolist() == tiny_tokenizer.encode("Who signed \ufffd it?\n").ids


def test_no_special_tokens_are_added() -> None:
    tokenizer = word_piece()
    tokenizer.add_special_tokens(["[CLS]"])
    marker = tokenizer.token_to_id("[CLS]")
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $0", None, [("[CLS]", marker)]
    )
    assert marker not in encode_question(tokenizer, "Who?")[0]
    assert (
        marker
        not in tokenize_units(tokenizer, as_units("He did."), "contained").input_ids
    )


@pytest.mark.parametrize("limit", ["truncation", "padding"])
def test_a_tokenizer_that_truncates_or_pads_is_refused(
    tiny_tokenizer: Tokenizer, limit: str
) -> None:
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_str())
    if limit == "truncation":
        tokenizer.enable_truncation(4)
    else:
        tokenizer.enable_padding(length=8)
    with pytest.raises(ValueError, match="truncates or pads, expected neither"):
        tokenize_units(tokenizer, as_units("text"), "contained")
    with pytest.raises(ValueError, match="truncates or pads, expected neither"):
        encode_question(tokenizer, "text")


def test_a_tokenizer_that_gives_nothing_is_refused() -> None:
    silent = Tokenizer(models.BPE())
    silent.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with pytest.raises(ValueError, match="gives no tokens for a text of 4 characters"):
        tokenize_units(silent, as_units("text"), "contained")


@pytest.fixture
def panicking(tiny_tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that loads, but panics on any text, since its pieces have no length."""
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_str())
    tokenizer.pre_tokenizer = pre_tokenizers.FixedLength(length=0)
    return tokenizer


def test_a_panic_is_an_ordinary_error_everywhere(panicking: Tokenizer) -> None:
    message = (
        "the tokenizer fails on a text of .* characters .*non-zero.*; use the tokenizer"
        " that"
    )
    units = [Unit(0, 3, "a b")]
    for call in (
        lambda: encode(panicking, "a b"),
        lambda: encode_question(panicking, "a b"),
        lambda: token_counter(panicking)("a b"),
        lambda: tokenize_units(panicking, units, "last_character"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_an_error_of_the_library() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]"))
    with pytest.raises(
        ValueError, match=r"the tokenizer fails on a text of 1 characters .*UNK"
    ):
        encode(tokenizer, "b")


def test_an_interrupt_is_passed_on(tiny_tokenizer: Tokenizer) -> None:
    class Interrupted:
        def encode(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(Interrupted(), "a")  # type: ignore[arg-type]


MEASURE = """
import resource, sys
from pathlib import Path
from tokenizers import Tokenizer
from spscanner_rag.checkpoint import ScannerSettings
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.text.segmentation import SentenceSegmenter

tokenizer = Tokenizer.from_file(sys.argv[1])
text = Path(sys.argv[2]).read_text(encoding="utf-8")

def read(characters):
    document = (text * (characters // len(text) + 1))[:characters]
    read = Reading(tokenizer, SentenceSegmenter(), ScannerSettings(match=True, prior=True))
    asked = read.pair("Who is it?", read.prepare(document)).sequence()
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


unit_lengths = st.lists(st.integers(1, 30), min_size=1, max_size=40)


def document_of(unit_ends: np.ndarray) -> TokenizedText:
    places = np.arange(unit_ends[-1] + 1, dtype=np.int32)
    return TokenizedText(
        [Unit(0, 1, "")] * len(unit_ends), places, places, places + 1, unit_ends
    )


def test_windows_are_the_originals(committed_oracles: Path) -> None:
    cases = json.loads((committed_oracles / "windows.json").read_text(encoding="utf-8"))
    assert cases
    for case in cases:
        unit_ends = np.array(case["sentence_end_indices"]) - case["query_tokens"]
        asked = QueryOnText(
            document_of(unit_ends), np.zeros(case["query_tokens"], np.int32)
        )
        found = []
        for first, last in window_ranges(unit_ends, case["window_size"]):
            sequence = asked.sequence(first, last)
            found.append(
                {
                    "sentence_range": [first, last],
                    "n_tokens": len(sequence.input_ids),
                    "sentence_end_indices": sequence.positions.tolist(),
                }
            )
        assert found == case["windows"]


@given(unit_lengths, st.integers(1, 100))
def test_every_unit_is_read_in_windows_as_large_as_asked(
    lengths: list[int], window_tokens: int
) -> None:
    unit_ends = np.cumsum(lengths) - 1
    ranges = window_ranges(unit_ends, window_tokens)
    read = {unit for first, last in ranges for unit in range(first, last + 1)}
    assert read == set(range(len(lengths)))
    assert ranges == sorted(ranges, key=lambda span: span[1])
    for first, last in ranges:
        tokens = sum(lengths[first : last + 1])
        # The original's last window may hold one token more, and a unit that fills a
        # window can bring a neighbour of one token.
        fills = max(lengths[first : last + 1]) >= window_tokens
        assert tokens <= window_tokens + 1 or (fills and last - first <= 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 12))
def test_units_that_share_a_token_are_read_too(
    lengths: list[int], window_tokens: int
) -> None:
    unit_ends = np.cumsum(lengths)
    ranges = window_ranges(unit_ends, window_tokens)
    assert {unit for first, last in ranges for unit in range(first, last + 1)} == set(
        range(len(lengths))
    )


def test_a_unit_longer_than_a_window_is_its_own() -> None:
    unit_ends = np.cumsum([5, 5, 100, 5, 5]) - 1
    assert (2, 2) in window_ranges(unit_ends, 20)


def test_no_units_no_windows() -> None:
    assert window_ranges(np.zeros(0, np.int64), 10) == []
    assert average_logits([], [], 0).shape == (0,)


def test_logits_are_averaged_over_the_windows_that_hold_a_unit() -> None:
    mean = average_logits(
        [(0, 1), (1, 2), (1, 3)], [[1.0, 2.0], [4.0, 5.0], [6.0, 7.0, 8.0]], 4
    )
    assert mean.dtype == np.float32
    assert mean.tolist() == [1.0, 4.0, 6.0, 8.0]
