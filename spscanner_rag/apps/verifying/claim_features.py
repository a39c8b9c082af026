"""What speaks for and against it that sentences say what a claim says."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from spscanner_rag.apps.verifying.differences import (
    is_negation,
    is_number_form,
    number_value,
)
from spscanner_rag.apps.verifying.source_words import words_of_text
from spscanner_rag.lexical.words import query_words, stems_of

_DENIALS: Final = frozenset(
    "unable incapable refused refuses refuse declined avoided prevented stopped"
    " unlike".split()
)


class ClaimFeatures(NamedTuple):
    """Numbers about a claim and the sentences that are likest to say it."""

    cosine: float  # of the claim with the nearest sentence, in context
    coverage: float  # share of the claim's words by rarity that the sentences have
    missing_numbers: int  # numbers of the claim that they do not have
    missing_names: int  # capitalized words of the claim that they do not have
    denial: int  # 1 if one of claim and best sentence denies, else 0


def features_of(
    claim: str,
    best_sentence: str,
    sentences: Sequence[str],
    cosine: float,
    rarity: Callable[[str], float],
) -> ClaimFeatures:
    """Compare a claim with the sentences that are likest to say it.

    Parameters
    ----------
    claim : str
    best_sentence : str
        The likeliest sentence.
    sentences : sequence of str
        It and others, with what stands around them.
    cosine : float
        Of the claim with the nearest sentence.
    rarity : callable
        The weight of a stem, from how many sentences of the documents have it.

    Examples
    --------
    >>> sentence = "She sank in 1906 off Fenwick."
    >>> features_of("She sank in 1907.", sentence, [sentence], 0.8, lambda _: 1.0)[1:]
    (0.5, 1, 0, 0)
    """
    told = _forms(" ".join(sentences))
    told_stems = set(stems_of(sorted(told)))
    weight = 0.0
    covered = 0.0
    for word, stem in _words_and_stems(claim):
        weight += rarity(stem)
        if stem in told_stems or word in told:
            covered += rarity(stem)
    claimed = words_of_text(claim)
    numbers = 0
    names = 0
    for place, claimed_word in enumerate(claimed):
        # the last letter may be the s of a genitive
        is_missing = not {claimed_word.form, claimed_word.form[:-1]} & told
        if is_number_form(claimed_word.form):
            is_sign = not claimed_word.form[:1].isalnum()
            numbers += not is_sign and _plain(claimed_word.form) not in told
        elif place and claim[claimed_word.start].isupper():
            names += is_missing
    is_denied = _denies(claim, told) != _denies(best_sentence, _forms(claim))
    coverage = covered / weight if weight else 0.0
    return ClaimFeatures(cosine, coverage, numbers, names, int(is_denied))


def _words_and_stems(text: str) -> list[tuple[str, str]]:
    words = list(query_words(text))
    return list(zip(words, stems_of(words), strict=True))


def _forms(text: str) -> set[str]:
    """The forms of a text's words, with hyphenated words also in their parts."""
    forms = {_plain(word.form) for word in words_of_text(text)}
    forms |= {_plain(word.form) for word in words_of_text(text.replace("-", " "))}
    return forms


def _plain(form: str) -> str:
    """A number in digits, any other word as it is."""
    return number_value(form) or form


def _denies(text: str, others: set[str]) -> bool:
    """Whether a text has an odd number of denials that the others do not have."""
    n_denials = 0
    for word in words_of_text(text):
        if word.form in others:
            continue
        n_denials += is_negation(word.form) or word.form in _DENIALS
    return n_denials % 2 == 1
