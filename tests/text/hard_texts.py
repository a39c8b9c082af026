"""Texts that tokenizers, and whoever cuts texts, find hard."""

from hypothesis import strategies as st

HARD_PARTS = [
    "The report ", "of the ", "Dr. S", "don't ", "1234567 ", "3.14", "x", "naïve ",
    "e\u0301 ", "(so) ", "...", "!!\n",
    " ", "  ", " " * 12, " " * 70, "\t", "\n", "\n\n", "\r\n", "\xa0", "\u2028",
    "\u3000", "\u200b", "\u200d", "\u202e",
    "\x00", "\ud800", "😀", "👩\u200d👩\u200d👧", "🇩🇪", "שלום ", "東京。", "ｶﾞ", "각",
    "ᄀ\u1161", "\u0301" * 9, "y" * 90,
    "<mask>", "<|endoftext|>", "a long added token " * 6, "ＡＢ", "İ", "Σας ",
]  # fmt: skip

# Some longer than the 64 characters that are read after a cut.
RUNS = [
    "the word ", "x", "7", " ", "\n", "\x00", "\u200b", "\u0301", "東", "a,", "x y, ",
    ". ", "<mask>", "é.",
]  # fmt: skip

any_text = st.one_of(
    st.text(st.characters(codec=None), max_size=80),
    st.lists(st.sampled_from(HARD_PARTS), max_size=80).map("".join),
    st.lists(
        st.tuples(st.sampled_from(RUNS), st.sampled_from([1, 2, 40, 70, 130])),
        max_size=12,
    ).map(lambda runs: "".join(run * count for run, count in runs)),
)
