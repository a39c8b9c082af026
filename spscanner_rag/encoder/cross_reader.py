"""Read the likeliest sentences once more, each in its surroundings and together with the question."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.nn.functional import normalize

from spscanner_rag.encoder.bert import Bert
from spscanner_rag.encoder.sentences import Step, ignore
from spscanner_rag.mamba2.backends import compute_in_forks
from spscanner_rag.text.tokenization import encode

QUESTION_TOKENS: Final = 64  # of a question that are read
WINDOW_TOKENS: Final = 140  # of the sentences that are read together; a longer sentence is read so far
WINDOWS: Final = 16  # of one text that are read at most, in one pass: some 3,000 tokens with the question
LIKELY: Final = 64  # sentences that windows may be laid around
REACH: Final = 1.5
"""How far below the best of its text a score may be; on 919 questions, reading more changed no ranking."""

HOPELESS: Final = -4.0
"""The score below which nothing is read: texts of a collection that are about something else."""

_CHARACTERS: Final = 16 * WINDOW_TOKENS  # of a sentence that are tokenized


class Range(NamedTuple):
    """Neighbouring sentences, by number."""

    first: int
    stop: int

    def depth(self, number: int, sentences: int) -> int:
        """How many neighbours a sentence has on its poorer side; the text's own ends are no edge."""
        before = number - self.first if self.first else sentences
        after = self.stop - 1 - number if self.stop < sentences else sentences
        return min(before, after)


class Sentences:
    """The tokens of a text's sentences, at most ``most`` of each, made by ``ids`` when they are asked for."""

    def __init__(self, count: int, ids: Callable[[int], list[int]], most: int = WINDOW_TOKENS) -> None:
        self._count, self._ids, self.most = count, ids, most
        self._made: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> list[int]:
        if number not in self._made:
            self._made[number] = self._ids(number)[: self.most]
        return self._made[number]

    def tokens(self, window: Range) -> int:
        """The number of tokens of some sentences."""
        return sum(len(self[number]) for number in range(*window))


class CrossReader:
    """A cross-encoder (Nogueira and Cho 2019) that gives a logit to every sentence of a window.

    It reads ``[CLS] question [SEP] sentences [SEP]``, so that every word is read with the question in view. A
    sentence's vector is the mean of its tokens' states, the question's that of the tokens before; the logit is
    their cosine times a scale, and a linear function of the sentence's. ``head``, (hidden_size + 2,), has the
    weights of the sentence's vector, the scale as a logarithm, and the bias.
    """

    def __init__(self, model: Bert, tokenizer: Tokenizer, head: torch.Tensor) -> None:
        self.model, self.tokenizer, self.head = model, tokenizer, head
        longest = model.shape.max_position_embeddings - 3  # without special tokens
        self.question_tokens = min(QUESTION_TOKENS, longest // 3)
        self.window_tokens = min(WINDOW_TOKENS, longest - self.question_tokens)
        self._first, self._between = (tokenizer.token_to_id(token) or 0 for token in ("[CLS]", "[SEP]"))

    @torch.inference_mode()
    def logits(
        self,
        query: str,
        sentences: Sequence[str],
        scores: NDArray[np.float32],
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> NDArray[np.float32]:
        """The logits of a text's sentences, (sentences,); minus infinity for one that is not read.

        Windows are laid around the sentences of the best ``scores``, (sentences,), within `REACH` of the best and
        not `HOPELESS`, until there are `WINDOWS`. The scores are logits that the scanner's weights calibrate. A
        sentence of several takes its logit from the one at whose edge it stands least. ``before`` and
        ``after_step`` are called with the number of tokens that are read.
        """
        compute_in_forks()

        def ids(number: int) -> list[int]:
            found: list[int] = encode(self.tokenizer, sentences[number].strip()[:_CHARACTERS]).ids
            return found

        read = Sentences(len(sentences), ids, self.window_tokens)
        likely = np.argsort(-scores, kind="stable")[:LIKELY]
        likely = likely[scores[likely] >= max(scores.max(initial=HOPELESS) - REACH, HOPELESS)]
        windows = sorted(laid_around(likely.tolist(), read), key=read.tokens)
        found, depths = np.full(len(sentences), -np.inf, np.float32), np.full(len(sentences), -1)
        if not windows:
            return found
        tokens = sum(map(read.tokens, windows))
        before(tokens)
        question = encode(self.tokenizer, query.strip()).ids[: self.question_tokens]
        asked = [[read[number] for number in range(*window)] for window in windows]
        for window, logits in zip(windows, self.forward([question] * len(asked), asked), strict=True):
            for number, logit in zip(range(*window), logits.tolist(), strict=True):
                if (depth := window.depth(number, len(sentences))) > depths[number]:
                    found[number], depths[number] = logit, depth
        after_step(tokens)
        return found

    def forward(
        self, questions: Sequence[list[int]], windows: Sequence[Sequence[list[int]]]
    ) -> Iterable[torch.Tensor]:
        """The logits, (sentences,), of the sentences of each window, which are given by their tokens."""
        rows, begins, owners, count = list[list[int]](), list[int](), list[int](), len(windows)
        for number, (question, sentences) in enumerate(zip(questions, windows, strict=True)):
            rows.append([self._first, *question, self._between])
            begins.append(len(rows[-1]))
            owners += [number] * begins[-1]  # the first vectors are those of the questions
            for ids in sentences:
                rows[-1] += ids
                owners += [count] * len(ids)
                count += 1
            rows[-1].append(self._between)
            owners.append(-1)
        states = self.model.forward(rows, begins).float()  # (tokens, hidden_size)
        owner = torch.tensor(owners, device=states.device)
        inside = owner >= 0
        sums = states.new_zeros(count, states.shape[1]).index_add(0, owner[inside], states[inside])
        means = sums / torch.bincount(owner[inside], minlength=count).clamp(min=1)[:, None]
        lengths = [len(sentences) for sentences in windows]
        of_window = torch.repeat_interleave(torch.tensor(lengths, device=states.device))  # (sentences,)
        asked, vectors = means[of_window], means[len(windows) :]  # each (sentences, hidden_size)
        cosines = (normalize(asked, dim=1) * normalize(vectors, dim=1)).sum(1)
        logits = self.head[-2].exp() * cosines + vectors @ self.head[:-2] + self.head[-1]
        return torch.split(logits, lengths)


def laid_around(likely: Iterable[int], ids: Sentences, most: int = WINDOWS) -> list[Range]:
    """Windows around sentences, in their order; one that stands well within another's has none of its own."""
    windows: list[Range] = []
    for number in likely:
        if len(windows) == most:
            break
        if not any(
            window.first <= number < window.stop and window.depth(number, len(ids)) for window in windows
        ):
            windows.append(_window(number, ids))
    return windows


def _window(number: int, ids: Sentences) -> Range:
    """Whole sentences around one, as many tokens before as after it, of ``ids.most`` in all."""
    first, stop = number, number + 1
    before = after = 0
    own = len(ids[number])
    while stop - first < ids.most:  # some sentences have no tokens
        left = first > 0 and own + before + after + len(ids[first - 1]) <= ids.most
        right = stop < len(ids) and own + before + after + len(ids[stop]) <= ids.most
        if left and (not right or before <= after):
            first -= 1
            before += len(ids[first])
        elif right:
            after += len(ids[stop])
            stop += 1
        else:
            break
    return Range(first, stop)
