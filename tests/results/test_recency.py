"""Which sentences are the newest, and a ranking that prefers them."""

import numpy as np
import pytest

from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.recency import NEARLY, newest_first, recency_of
from spscanner_rag.results.together import Together
from tests.fakes import result_of


@pytest.mark.parametrize(
    "line",
    [
        "[2026-03-04 18:02] Ann: It rained.",
        "2026-03-04 Ann: It rained.",
        "2026-03-04T18:02:11Z Ann: It rained.",
        "Ann (4 March 2026): It rained.",
        "Ann Lee [March 4, 2026 18:02]: It rained.",
        "[13/03/2026, 18:02:11] Ann: It rained.",
        "[18:02, 13/3/2026] Ann: It rained.",
        "# What happened on 4 March 2026",
        "Wed, 4 March 2026",
        "Date: 2026-03-04",
        "Date: Wed, 4 March 2026",
    ],
)
def test_a_line_begins_with_its_date(line: str) -> None:
    text = f"{line}\n2026-03-01\nIt snowed."
    starts = np.array([0, text.index("It snowed")])
    assert recency_of(text, starts).tolist() == [1, 0]


@pytest.mark.parametrize(
    "line",
    [
        "The ship leaves on 2029-03-04",
        "2029-03-04 was a good day.",
        "We leave on 4 March 2029: be there.",
        "Ann: on 4 March 2029 we leave.",
        "[18:02] Ann: on 4 March 2029 we leave.",
    ],
)
def test_a_date_within_a_line_does_not_date_it(line: str) -> None:
    text = f"2026-03-02\n{line}\n2026-03-05\nIt snowed."
    starts = np.array([text.index(line), text.index("It snowed")])
    assert recency_of(text, starts).tolist() == [0, 1]


def test_months_come_first_if_a_date_can_only_be_read_so() -> None:
    ambiguous = "[01/05/2026, 9:00] Ann: a\n[02/04/2026, 9:00] Ben: b"
    starts = np.array([0, ambiguous.index("[02")])
    assert recency_of(ambiguous, starts).tolist() == [1, 0]
    american = f"{ambiguous}\n[03/13/2026, 9:00] Ann: c"
    assert recency_of(american, starts).tolist() == [0, 1]


def test_without_dates_the_later_sentence_is_newer() -> None:
    assert recency_of("It rained. It snowed.", np.array([0, 11])).tolist() == [0, 1]


def test_groups_begin_at_their_best_sentence() -> None:
    steps = np.array([0, 0.6, 1.1, 1.7]) * NEARLY
    newest = newest_first(np.arange(4), -steps, np.arange(4))
    assert newest.tolist() == [1, 0, 3, 2]


CHANGED = result_of(
    ["2026-01-02 Ann: the key is red.", "2026-02-02 Ann: the key is blue.", "Hm."],
    [2.0, 1.0, -4.0],
    "\n",
)


def texts(result: ScanResult, **options: object) -> list[str]:
    return [passage.text[-4:-1] for passage in result.select(**options)]  # type: ignore[arg-type]


def test_the_newest_of_nearly_equal_sentences_is_selected_and_shown_first() -> None:
    assert texts(CHANGED, top_k=1) == ["red"]
    assert texts(CHANGED, top_k=1, prefer="newest") == ["lue"]
    options = {"order": "score", "top_k": 2}
    assert texts(CHANGED, **options, prefer="newest") == ["lue", "red"]
    assert texts(CHANGED, **options) == ["red", "lue"]
    passages = CHANGED.select(top_k=2, order="score", prefer="newest")
    assert passages[0].score < passages[1].score  # scores stay as they are


def test_the_budget_goes_to_the_newest_first() -> None:
    kept = texts(CHANGED, max_tokens=6, count_tokens=lambda text: len(text.split()))
    assert kept == ["red"]
    kept = texts(
        CHANGED,
        max_tokens=6,
        count_tokens=lambda text: len(text.split()),
        prefer="newest",
    )
    assert kept == ["lue"]


def test_dates_decide_over_the_order_of_documents() -> None:
    newer = result_of(["# 3 May 2026", "It is blue."], [-5.0, 0.0], "\n")
    older = result_of(["# 2 May 2026", "It is red."], [-5.0, 0.5], "\n")
    undated = result_of(["It is grey."], [0.2])
    together = Together([newer, older, undated])
    selection = Selection(top_k=3, order="score", prefer="newest")
    found = [passage.text for _, passage in together.select(selection)]
    assert found == ["It is blue.", "It is red.", "It is grey."]


def test_what_is_no_preference_is_refused() -> None:
    with pytest.raises(ValueError, match=r'prefer: got \'new\'; expected "newest"'):
        CHANGED.select(prefer="new")  # type: ignore[arg-type]
