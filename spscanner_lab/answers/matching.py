"""How well an answer's words match the right answers."""

from collections import Counter
from collections.abc import Iterable

from spscanner_lab.evidence.metrics import normalized


def references_of(answers: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct answers among these, in order, without blank ones."""
    stripped = [answer.strip() for answer in answers]
    return tuple(dict.fromkeys(filter(None, stripped)))


def exact_match(answer: str, references: Iterable[str]) -> float:
    """Return 1.0 if the answer equals a reference when both are `normalized`, else 0.0.

    Examples
    --------
    >>> from spscanner_lab.answers.matching import exact_match
    >>> exact_match("The keeper.", ["a keeper", "the captain"])
    1.0
    """
    return float(normalized(answer) in map(normalized, references))


def token_f1(answer: str, references: Iterable[str]) -> float:
    """Return the F1 of the words of an answer and its nearest reference, 0 to 1.

    Words are `normalized`, and repetitions count.

    Examples
    --------
    >>> from spscanner_lab.answers.matching import token_f1
    >>> token_f1("the old keeper", ["the keeper signed"])
    0.5
    """
    words = normalized(answer).split()
    return max(_f1(words, normalized(reference).split()) for reference in references)


def _f1(answer: list[str], reference: list[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (Counter(answer) & Counter(reference)).total()
    return 2 * common / (len(answer) + len(reference))
