"""Small tokenizers of all kinds that checkpoints have."""

from collections.abc import Callable
from typing import Any

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

from spscanner_rag.text.units import Unit

PROSE = """The keeper of the lighthouse wrote the date in his book; \
he signed the treaty on 14 May 1911.
"Who signed it?" she asked. Nobody answered! Dr. Smith's report, of 400 pages, said:
the harbour must be widened. Why did they leave the island? Because the well was dry.
"""


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
    """Like GPT-NeoX's: NFC, spaces as added tokens, offsets without white space."""
    tokenizer = bpe(byte_level(add_prefix_space=False), normalizers.NFC())
    tokenizer.add_tokens(
        [AddedToken(" " * width, normalized=True) for width in range(2, 25)]
    )
    tokenizer.post_processor = processors.ByteLevel(
        trim_offsets=True, add_prefix_space=False
    )
    return tokenizer


def trimmed_offsets() -> Tokenizer:
    """Like RoBERTa's: only a text's first space belongs to a token, its first."""
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
    """Tokens of two characters that begin at odd or even places, by the word's end."""
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


def as_units(*texts: str) -> list[Unit]:
    """Units whose model_text is given; their spans do not matter here."""
    return [Unit(0, 1, text) for text in texts]
