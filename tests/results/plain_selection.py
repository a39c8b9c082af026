"""The rules of a selection, written down plainly, and results to try them on."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from hypothesis import strategies as st

from spscanner_rag.results import Passage, ScanResult
from tests.fakes import words

# Few distinct values, so that equal logits are common.
LOGITS = st.sampled_from([-90.0, -7.5, -1.0, 0.0, 0.25, 3.0, 40.0, 88.0])


GAPS = st.sampled_from([" ", "\n", "", "  ", "\n\n\n", "\r\n", "\t \t ", " " * 40])


@st.composite
def results(
    draw: st.DrawFn, count_tokens: Callable[[str], int] | None = words
) -> ScanResult:
    lengths = draw(st.lists(st.integers(1, 12), max_size=25))
    text, starts, ends = draw(GAPS), [], []
    for number, length in enumerate(lengths):
        starts.append(len(text))
        text += " ".join([f"w{number}"] * length)
        ends.append(len(text))
        text += draw(GAPS)
    logits = draw(st.lists(LOGITS, min_size=len(lengths), max_size=len(lengths)))
    numbers = st.lists(
        st.integers(0, 4), min_size=len(lengths), max_size=len(lengths)
    ).map(sorted)
    return ScanResult(
        "q", text, starts, ends, logits, count_tokens, draw(st.none() | numbers)
    )


TOP_K = st.one_of(
    st.none(),
    st.integers(1, 30),
    st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=False),
)


THRESHOLD = st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.5, 0.0, 1.0]))


CONTEXT = st.integers(0, 4)


@dataclass
class PlainSelection:
    """The rules of `ScanResult.select`, a sentence at a time, for additive counters."""

    result: ScanResult

    def picks(self, top_k: float | None, threshold: float | None) -> list[int]:
        n = len(self.result.logits)
        if top_k is None:
            allowed = n
        elif isinstance(top_k, int):
            allowed = top_k
        else:
            allowed = max(10, math.ceil(Decimal(repr(top_k)) * n))
        order = sorted(range(n), key=lambda i: (-float(self.result.logits[i]), i))[
            :allowed
        ]
        return [
            i
            for i in order
            if threshold is None or self.result.sentences[i].score >= threshold
        ]

    def in_block(self, number: int, other: int) -> bool:
        """Whether ``other`` is a sentence in the same block."""
        blocks = self.result.block_of
        return 0 <= other < len(blocks) and blocks[other] == blocks[number]

    def all_of(self, picks: list[int], context: int) -> set[int]:
        return {
            j
            for i in picks
            for j in range(i - context, i + context + 1)
            if self.in_block(i, j)
        }

    def tokens(self, kept: list[int], count: Callable[[str], int]) -> int:
        """Tokens of the longer form.

        One has a sentence per line, the other sentences as in the text, gaps marked.
        """
        result, apart, as_it_stands = self.result, "", ""
        for place, number in enumerate(sorted(kept)):
            sentence = result.text[result.starts[number] : result.ends[number]]
            apart += ("\n" if place else "") + sentence
            if number - 1 in kept and self.in_block(number, number - 1):
                as_it_stands += (
                    result.text[result.ends[number - 1] : result.starts[number]]
                    + sentence
                )
            else:
                as_it_stands += ("\n" if place else "") + sentence
        return max(count(apart), count(as_it_stands))

    def within(
        self,
        picks: list[int],
        context: int,
        max_tokens: int,
        count: Callable[[str], int] = words,
    ) -> set[int]:
        kept: list[int] = []

        def take(number: int) -> bool:
            if number in kept:
                return True
            if self.tokens([*kept, number], count) > max_tokens:
                return False
            kept.append(number)
            return True

        for number in picks:
            take(number)
        for number in list(kept):
            open_sides = [-1, 1]
            for distance in range(1, context + 1):
                for side in list(open_sides):
                    neighbour = number + side * distance
                    if not self.in_block(number, neighbour) or not take(neighbour):
                        open_sides.remove(side)
        return set(kept)


def numbers(result: ScanResult, passages: tuple[Passage, ...]) -> list[int]:
    starts = result.starts.tolist()
    return [starts.index(passage.start) for passage in passages]
