"""Windows of whole sentences around the likeliest ones, for the cross-reader."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

WINDOW_TOKENS: Final = 140
"""Maximum number of tokens of a window's sentences; longer sentences are cut."""

WINDOWS: Final = 16
"""Maximum number of windows of a text, in one pass: some 3,000 tokens with the
question."""


class SentenceRange(NamedTuple):
    """A range of neighbouring sentences, by index."""

    first: int
    stop: int

    def depth(self, number: int, n_sentences: int) -> int:
        """Return how many neighbours a sentence has on the side with fewer.

        Ends of the text do not count as edges.
        """
        before = number - self.first if self.first else n_sentences
        after = n_sentences
        if self.stop < n_sentences:
            after = self.stop - 1 - number
        return min(before, after)


class SentenceTokens:
    """The tokens of a text's sentences, made on first use.

    Parameters
    ----------
    count : int
        Number of sentences.
    ids : callable
        Makes the token ids of the sentence with a number.
    max_tokens : int
        Tokens that are taken of a sentence.
    """

    def __init__(
        self,
        count: int,
        ids: Callable[[int], list[int]],
        max_tokens: int = WINDOW_TOKENS,
    ) -> None:
        self.max_tokens = max_tokens
        self._count = count
        self._ids = ids
        self._tokens_by_number: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> list[int]:
        if number not in self._tokens_by_number:
            self._tokens_by_number[number] = self._ids(number)[: self.max_tokens]
        return self._tokens_by_number[number]

    def count_in(self, window: SentenceRange) -> int:
        """Return the number of tokens of some sentences."""
        return sum(len(self[number]) for number in range(*window))


def windows_around(
    likeliest: Iterable[int], sentences: SentenceTokens, max_windows: int = WINDOWS
) -> list[SentenceRange]:
    """Return windows around sentences, in their order.

    A sentence inside another's window, off its edge, gets none.
    """
    windows: list[SentenceRange] = []
    for number in likeliest:
        if len(windows) == max_windows:
            break
        if not _is_inside(number, windows, len(sentences)):
            windows.append(_window_around(number, sentences))
    return windows


def _is_inside(number: int, windows: Iterable[SentenceRange], n_sentences: int) -> bool:
    """Whether a sentence is inside one of the windows, off its edge."""
    for window in windows:
        if window.first <= number < window.stop and window.depth(number, n_sentences):
            return True
    return False


def _window_around(number: int, sentences: SentenceTokens) -> SentenceRange:
    """Whole sentences around one, about as many tokens before it as after it.

    There are at most ``sentences.max_tokens`` tokens in all.
    """
    first = number
    stop = number + 1
    tokens_before = 0
    tokens_after = 0
    tokens_of_it = len(sentences[number])
    while stop - first < sentences.max_tokens:  # some sentences have no tokens
        room = sentences.max_tokens - tokens_of_it - tokens_before - tokens_after
        fits_before = first > 0 and len(sentences[first - 1]) <= room
        fits_after = stop < len(sentences) and len(sentences[stop]) <= room
        if fits_before and (not fits_after or tokens_before <= tokens_after):
            first -= 1
            tokens_before += len(sentences[first])
        elif fits_after:
            tokens_after += len(sentences[stop])
            stop += 1
        else:
            break
    return SentenceRange(first, stop)
