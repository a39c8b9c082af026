"""Where the ids of a piece could differ from those of the whole, and the memory that pieces save."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from spscanner_rag.text.tokenization import tokenize_in_pieces
from spscanner_rag.text.units import readable

PROSE = "The keeper wrote the date, and signed it: 14 May 1911, 77 or 777. Nobody answered! Why? the word"
# Runs longer than the 64 characters that are read after a cut.
RUNS = [
    "the word ", "x", "7", " ", "\n", "\x00", "\u200b", "\u0301", "東", "a,", "x y, ", ". ", "<mask>", "é.",
]  # fmt: skip
texts_of_runs = st.lists(st.tuples(st.sampled_from(RUNS), st.sampled_from([1, 2, 40, 70, 130])), max_size=12)

Bytes = pre_tokenizers.ByteLevel


def trained(model: Any, trainer: Any, pre_tokenizer: Any) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator([PROSE] * 5, trainer)
    return tokenizer


def byte_bpe(pre_tokenizer: Any) -> Tokenizer:
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=Bytes.alphabet(), show_progress=False)
    return trained(models.BPE(), trainer, pre_tokenizer)


def roberta() -> Tokenizer:
    """Only the first space of a text lies in a token; a space that is a token of its own lies nowhere."""
    tokenizer = byte_bpe(Bytes(add_prefix_space=True))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=True)
    return tokenizer


def digits_from_the_right(width: int) -> Tokenizer:
    """Digits in groups that are counted from the end of their run."""
    pattern = rf"\p{{N}}{{1,{width}}}(?=(?:\p{{N}}{{{width}}})*(?:\P{{N}}|$))"
    groups = pre_tokenizers.Split(Regex(pattern), "isolated")
    return byte_bpe(pre_tokenizers.Sequence([groups, Bytes(add_prefix_space=False)]))


def bert() -> Tokenizer:
    """A word of more than 100 characters is one token; control characters are none."""
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    tokenizer = trained(models.WordPiece(unk_token="[UNK]"), trainer, pre_tokenizers.BertPreTokenizer())
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


def marked_words() -> Tokenizer:
    """The mark of the first word of a text lies on the word, of the others on the space before it."""
    trainer = trainers.UnigramTrainer(
        vocab_size=80, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    return trained(models.Unigram(), trainer, pre_tokenizers.Metaspace())


def pairs(pre_tokenizer: Any) -> Tokenizer:
    """Tokens of two characters that begin at odd or even places, as the end of the word decides."""
    vocabulary = [("<unk>", 0.0), ("▁", -1.0), ("▁x", -1.0), ("xx", -1.0), ("x", -10.0)]
    vocabulary += [("y,", -1.0), (",y", -0.99), ("y", -5.0), (",", -5.0)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, 0))
    tokenizer.pre_tokenizer = pre_tokenizer
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "roberta": roberta,
    "digits in threes": lambda: digits_from_the_right(3),
    "digits in twos": lambda: digits_from_the_right(2),
    "bert": bert,
    "marked words": marked_words,
    "pairs": lambda: pairs(pre_tokenizers.WhitespaceSplit()),
    "pairs, marked": lambda: pairs(pre_tokenizers.Metaspace()),
}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return KINDS[request.param]()


def joined(tokenizer: Tokenizer, text: str, piece_characters: int) -> tuple[list[int], list[tuple[int, int]]]:
    ids, offsets = [], []
    for piece_ids, piece_offsets in tokenize_in_pieces(tokenizer, text, piece_characters):
        ids += piece_ids.tolist()
        offsets += [(start, end) for start, end in piece_offsets.tolist()]
    return ids, offsets


@settings(max_examples=100)
@given(runs=texts_of_runs, piece_characters=st.sampled_from([1, 9, 64, 200]))
def test_long_runs_make_no_difference(
    tokenizer: Tokenizer, runs: list[tuple[str, int]], piece_characters: int
) -> None:
    text = "".join(run * count for run, count in runs)
    whole = tokenizer.encode(text, add_special_tokens=False)
    assert joined(tokenizer, text, piece_characters) == (whole.ids, whole.offsets)


@pytest.mark.parametrize("piece_characters", [1, 20, 50, 130, 300])
@pytest.mark.parametrize(
    "text",
    [
        ("the word and " * 10 + "x" * 150 + " the end, of the " + "7" * 100 + " word. ") * 4,
        "x" * 65 + " " * 65 + "x" * 128 + " end",
        "x " + "y," * 80,
        "7" * 133 + " x",
    ],
)
def test_words_longer_than_what_is_read_after_a_cut(
    tokenizer: Tokenizer, text: str, piece_characters: int
) -> None:
    whole = tokenizer.encode(text, add_special_tokens=False)
    assert joined(tokenizer, text, piece_characters) == (whole.ids, whole.offsets)


@pytest.mark.parametrize("piece_characters", range(1, 400, 13))
def test_added_tokens_longer_than_what_is_read_after_a_cut(piece_characters: int) -> None:
    long = "one added token of many words, " * 8
    tokenizer = byte_bpe(Bytes(add_prefix_space=False))
    tokenizer.add_tokens([long])
    text = (PROSE + " " + long + "end. ") * 3
    whole = tokenizer.encode(text, add_special_tokens=False)
    assert whole.tokens.count(long) == 3
    assert joined(tokenizer, text, piece_characters) == (whole.ids, whole.offsets)


def test_surrogates_are_read_one_for_one(tiny_tokenizer: Tokenizer) -> None:
    text = "the \ud83d\ude00 end \udfff, " * 50
    whole = tiny_tokenizer.encode(readable(text), add_special_tokens=False)
    assert joined(tiny_tokenizer, text, 30) == (whole.ids, whole.offsets)
    assert whole.offsets[-1][1] == len(text)


def test_nothing_gives_nothing(tiny_tokenizer: Tokenizer) -> None:
    assert list(tokenize_in_pieces(tiny_tokenizer, "", 10)) == []


def test_whole_pieces_stay_small(tiny_tokenizer: Tokenizer) -> None:
    for ids, offsets in tokenize_in_pieces(tiny_tokenizer, PROSE * 100, 500):
        assert ids.dtype == offsets.dtype == np.int32
        assert ids.shape == offsets.shape[:1]
        assert offsets[-1, 1] - offsets[0, 0] <= 500 + 64
    *_, before, last = tokenize_in_pieces(tiny_tokenizer, "a" * 5000 + " " + PROSE * 20, 100)
    assert len(before[0]) < 100
    assert len(last[0]) < 200


MEASURE = """
import resource, sys
from pathlib import Path
from tokenizers import Tokenizer
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.text.segmentation import SentenceSegmenter

tokenizer = Tokenizer.from_file(sys.argv[1])
text = Path(sys.argv[2]).read_text(encoding="utf-8")

def read(characters):
    document = (text * (characters // len(text) + 1))[:characters]
    read = Reading(tokenizer, SentenceSegmenter(), "last_character", lexical_match=True, lexical_prior=True)
    asked = read.pair("Who is it?", read.prepare(document)).sequence()
    assert len(asked.input_ids) > characters / 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(read(30_000), read(3_000_000))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts kilobytes on Linux only")
@pytest.mark.parametrize(("run", "megabytes"), [(None, 150), ("🇩🇪", 350), ("漢字", 350)])
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
        [sys.executable, "-c", MEASURE, file, document], check=True, capture_output=True, text=True
    )
    small, large = map(int, done.stdout.split())
    assert large - small < megabytes * 1024
