"""How much the scores of a sentence count in its logit."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.bounded_numbers import check_numbers

NEAR = 1
"""Neighbours on each side whose mean cosine also counts: a sentence among matching
ones matches better."""

WIDE = 4
"""As `NEAR`, farther away."""

_LARGEST_WEIGHT = 1000.0


@dataclass(frozen=True, slots=True)
class MeaningWeights:
    """The weights of a sentence's scores in its logit.

    The object "spscanner.meaning" of ``config.json``. The logit is ``bias + scanner *
    s + sentence * c + near * (n - c) + wide * (w - c)``: s is the scanner's own logit,
    c the cosine of the question with the sentence, n and w its mean over the sentences
    up to `NEAR` and `WIDE` away. With the logit e of a sentence scan, it is ``scan_bias
    + scan_scanner * s + scan * e``, and a scanner that is sure by itself raises it to
    ``log(exp(logit) + exp(sure * s + sure_bias))``: either of the two may find a
    sentence. Where the scanner does not read, as in texts that are not in English,
    `estimates` takes the place of e.

    Parameters
    ----------
    scanner, sentence, near, wide, bias : float
        The weights of the first formula.
    scan, scan_scanner, scan_bias : float
        The weights of the second.
    sure, sure_bias : float, default 0
        Turn the scanner's logit into that of a sentence which it finds by itself. With
        a ``sure`` of 0 it finds none so.
    words : float
        The weight of the share of the question's words that a sentence has, in
        `estimates`.
    length : float
        The weight of the logarithm of a sentence's length, 1 being the mean of its
        text, in `estimates`.
    unread, unread_bias : float
        Turn the sentence scan's logit into that of a sentence which the scanner has not
        read.
    cross : float, default 0
        The weight of the cross-reader's logit.
    asks, heading, handed : float, default 0
        Added to the logit of a sentence that asks and of a heading; the share of such a
        sentence's lead that the sentence below it gets. See `scan.echoes`.
    items, lead_in : float, default 0
        The share of what a lead-in is ahead that an item of its list gets, and the
        share of what its best item is ahead that a lead-in gets. See `scan.lead_ins`.
    others : float, default 0
        Added to the logit of a sentence that another speaker says than the one whose
        words are asked for. See `scan.who_said_it`.
    texts, scan_texts : float, default 0.4
        How much it counts that a text is behind the best of its collection by words, in
        the first formula and in the second, which is that of longer texts. Of a short
        text, the words of its best sentence are nearly all.
    texts_meaning, scan_texts_meaning : float, default 0
        How much it counts, in either formula, that a text's best sentences are behind
        those of the text of its collection that is best so, in mean cosine. See
        `scan.texts_together`.
    mean, deviation : float
        Mean and deviation of the encoder's cosines of unrelated texts. Another
        encoder's cosines are scaled to them.
    answer_scale, answer_bias : float
        Turn `answer_evidence` into the probability that a text answers. With a scale
        of 0 there is none.
    answer_others : float, default 0
        The weight, in that probability's logit, of how far other speakers are ahead of
        the one whose words are asked for.

    Raises
    ------
    ValueError
        For a weight that is not a number, or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from spscanner_rag.encoder.meaning_weights import MeaningWeights
    >>> weights = MeaningWeights(scanner=0.5, sentence=10.0, bias=-3.0)
    >>> weights.logits(np.float32([2.0]), np.float32([0.4])).tolist()
    [2.0]
    """

    scanner: float = 1.0
    sentence: float = 0.0
    near: float = 0.0
    wide: float = 0.0
    cross: float = 0.0
    bias: float = 0.0
    texts: float = 0.4
    texts_meaning: float = 0.0
    scan_texts: float = 0.4
    scan_texts_meaning: float = 0.0
    mean: float = 0.0
    deviation: float = 1.0
    answer_scale: float = 0.0
    answer_bias: float = 0.0
    answer_others: float = 0.0
    scan: float = 1.0
    scan_scanner: float = 0.0
    scan_bias: float = 0.0
    sure: float = 0.0
    sure_bias: float = 0.0
    unread: float = 1.0
    unread_bias: float = 0.0
    asks: float = 0.0
    heading: float = 0.0
    handed: float = 0.0
    items: float = 0.0
    lead_in: float = 0.0
    others: float = 0.0
    words: float = 0.0
    length: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self, "spscanner.meaning", _LARGEST_WEIGHT)
        if self.deviation <= 0:
            raise ValueError(
                f"spscanner.meaning.deviation is {self.deviation!r}; expected a number "
                "above 0"
            )

    def logits(
        self,
        scanner: NDArray[np.float32],
        cosines: NDArray[np.float32],
        estimates: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return the logits of a text's sentences, (sentences,).

        Parameters
        ----------
        scanner : array (sentences,)
            The scanner's own logits.
        cosines : array (sentences,)
            Cosines of the question with the sentences.
        estimates : array (sentences,), optional
            The logits of a sentence scan.
        """
        if estimates is not None:
            scanned = self.scan_scanner * scanner + self.scan * estimates
            logits = np.asarray(self.scan_bias + scanned, np.float32)
            return self._or_sure(logits, scanner)
        near = mean_of_neighbours(cosines, NEAR)
        wide = mean_of_neighbours(cosines, WIDE)
        added = (
            self.sentence * cosines
            + self.near * (near - cosines)
            + self.wide * (wide - cosines)
        )
        return np.asarray(self.bias + self.scanner * scanner + added, np.float32)

    def _or_sure(
        self, logits: NDArray[np.float32], scanner: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The logits, raised where the scanner is sure by itself: (sentences,)."""
        if not self.sure:
            return logits
        alone = self.sure * scanner + self.sure_bias
        return np.asarray(np.logaddexp(logits, alone), np.float32)

    def estimates(
        self,
        cosines: NDArray[np.float32],
        word_shares: NDArray[np.float32] | None = None,
        relative_lengths: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return the logits of sentences, (sentences,), without a scanner's.

        Parameters
        ----------
        cosines : array (sentences,)
            Cosines of the question with the sentences.
        word_shares : array (sentences,), optional
            Their scores by words, as shares of the largest possible one.
        relative_lengths : array (sentences,), optional
            Their lengths, 1 being the mean of the text.
        """
        logits = self.logits(np.zeros_like(cosines), cosines)
        if word_shares is not None:
            logits = logits + np.float32(self.words) * word_shares
        if relative_lengths is not None:
            logarithms = np.asarray(np.log(relative_lengths), np.float32)
            logits = logits + np.float32(self.length) * logarithms
        return np.asarray(logits, np.float32)

    def behind_asked(
        self, logits: NDArray[np.float32], said_by_others: NDArray[np.bool_]
    ) -> NDArray[np.float32]:
        """Return logits with `others` added for what others say than who is asked for.

        Parameters
        ----------
        logits : array (sentences,)
            Of all sentences of a text.
        said_by_others : array (sentences,)
            From `scan.who_said_it.said_by_others`.
        """
        return np.asarray(logits + self.others * said_by_others, np.float32)

    def unread_logits(self, estimates: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the logits, (sentences,), of sentences that the scanner has not read.

        Parameters
        ----------
        estimates : array (sentences,)
            The logits of a sentence scan.
        """
        return np.asarray(self.unread * estimates + self.unread_bias, np.float32)

    def to_scale(
        self, cosines: NDArray[np.float32], mean: float, deviation: float
    ) -> NDArray[np.float32]:
        """Return another encoder's cosines on the scale of these weights' encoder.

        Parameters
        ----------
        cosines : array (sentences,)
            Of the other encoder.
        mean, deviation : float
            Of its cosines of unrelated texts.
        """
        standardized = (cosines - mean) / deviation
        return np.asarray(standardized * self.deviation + self.mean, np.float32)

    @property
    def weighs_echoes(self) -> bool:
        """Whether a sentence that asks, or a heading, counts as such."""
        return any((self.asks, self.heading, self.handed))

    def behind_others(
        self, by_words: float, by_meaning: float, is_scanned: bool
    ) -> np.float32:
        """Return what is added to all logits of a text, for how far it is behind.

        Parameters
        ----------
        by_words : float
            Its distance to the text that is best by words, at most 0.
        by_meaning : float
            Its distance to the text whose best sentences are nearest, in mean cosine.
        is_scanned : bool
            Whether a sentence scan reads it, so that the second formula holds.

        Examples
        --------
        >>> weights = MeaningWeights(texts=0.5, scan_texts=2, scan_texts_meaning=8)
        >>> float(weights.behind_others(-1.0, -0.25, is_scanned=False))
        -0.5
        >>> float(weights.behind_others(-1.0, -0.25, is_scanned=True))
        -4.0
        """
        of_words = self.scan_texts if is_scanned else self.texts
        of_meaning = self.scan_texts_meaning if is_scanned else self.texts_meaning
        return np.float32(of_words * by_words + of_meaning * by_meaning)

    @property
    def weighs_texts(self) -> bool:
        """Whether a text's best sentences count for all of its sentences."""
        return any((self.texts_meaning, self.scan_texts_meaning))

    @property
    def weighs_others(self) -> bool:
        """Whether it counts who says a sentence."""
        return any((self.others, self.answer_others))

    @property
    def weighs_lists(self) -> bool:
        """Whether an item counts with its lead-in."""
        return any((self.items, self.lead_in))

    def answerable(self, evidence: float, lead_of_others: float = 0) -> float | None:
        """Return the probability that a text answers, from `answer_evidence`.

        ``lead_of_others`` is how far other speakers are ahead. None without weights.
        """
        if not self.answer_scale:
            return None
        logit = self.answer_scale * evidence + self.answer_bias
        logit += self.answer_others * lead_of_others
        # The sigmoid, computed by a hyperbolic tangent, which does not overflow.
        return (1 + math.tanh(logit / 2)) / 2


def mean_of_neighbours(values: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """The mean of each value and its neighbours up to ``reach`` away: (values,)."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    numbers = np.arange(len(values))
    first = np.maximum(numbers - reach, 0)
    stop = np.minimum(numbers + reach + 1, len(values))
    return np.asarray((sums[stop] - sums[first]) / (stop - first), np.float32)
