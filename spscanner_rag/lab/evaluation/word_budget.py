"""Whether the best units, joined and cut at a number of words, contain an answer."""

from collections.abc import Iterable, Sequence

from spscanner_rag.lab.answers.answer_scores import normalized

WORD_BUDGETS = (50, 100, 200, 300, 400, 500)
"""Numbers of words l from 0 to 500, as in "Dense X Retrieval" (Chen et al., 2024); 0 words hold no answer."""


def answer_recall_at_words(
    texts: Iterable[str], answers: Sequence[str], budgets: Sequence[int] = WORD_BUDGETS
) -> dict[int, float]:
    """For each number of words, 1.0 if an answer is in that much of the texts, else 0.0.

    Parameters
    ----------
    texts : iterable of str
        The units, the best first; no more of them are taken than the largest budget needs.
    answers : sequence of str
        Right answers, compared as `normalized` makes them, as whole words.
    budgets : sequence of int
        Numbers of words, which white space separates.

    Returns
    -------
    dict
        Empty if no answer has a word.
    """
    wanted = [f" {own} " for answer in answers if (own := normalized(answer))]
    if not wanted:
        return {}
    words: list[str] = []
    for text in texts:
        words += text.split()
        if len(words) >= max(budgets):
            break
    cut = {budget: f" {normalized(' '.join(words[:budget]))} " for budget in budgets}
    return {budget: float(any(answer in held for answer in wanted)) for budget, held in cut.items()}
