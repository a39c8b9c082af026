"""What a first try of the bundled checkpoint shows, and the contents of its folder."""

from pathlib import Path

import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.pages.scanned_document import UNCLEAR
from spscanner_rag.checkpoint import locate


@pytest.mark.parametrize(
    ("question", "sentences", "best"),
    [
        (
            "Who signed the treaty?",
            ["Anne was born in 1787.", "She signed the treaty."],
            1,
        ),
        (
            "When was the bridge opened?",
            ["The bridge was opened in 1894.", "It rained.", "Nobody came."],
            0,
        ),
        (
            "What is the capital of France?",
            [
                "Berlin is in Germany.",
                "Rome is old.",
                "The capital of France is Paris.",
            ],
            2,
        ),
        (
            "Who keeps the lighthouse?",
            ["It rained.", "The lighthouse is kept by Ada.", "Fish is cheap."],
            1,
        ),
    ],
)
def test_of_a_few_sentences_the_one_that_answers_is_first(
    bundled: Scanner, question: str, sentences: list[str], best: int
) -> None:
    together = bundled.scan(question, " ".join(sentences)).logits
    assert int(np.argmax(together)) == best
    alone = [
        float(bundled.scan(question, sentence).logits[0]) for sentence in sentences
    ]
    assert int(np.argmax(alone)) == best


HANDBOOK = (
    "New colleagues get a badge and a locker on their first morning. The "
    "kitchen on the second floor is cleaned every\n"
    "evening. Everyone who works full time is entitled to twenty-seven days of "
    "paid annual leave. Parking spaces are\n"
    "given out once a year by lot. Travel is booked through the office in "
    "Leeds. Bicycles may be left in the yard.\n"
    "Illness is reported to the team leader before nine. Laptops are replaced "
    "after four years."
)

DIARY = (
    "We left the inn before sunrise and rode along the river. At noon the old "
    "mare stopped and would not go on. An adder\n"
    "had struck her on the foreleg, just above the hoof. My brother walked her "
    "back to the village. The smith knew of a\n"
    "remedy and asked for hot water. In the evening rain set in. We slept in "
    "the barn, beside the cart. A letter from my\n"
    "sister was waiting for us."
)

REPORT = (
    "At 09:12 the first customers wrote that orders failed. The team on call "
    "was paged two minutes later. Dashboards\n"
    "showed that every request to the catalogue timed out. A new release had "
    "doubled the number of connections to the\n"
    "database until it accepted no more. The release was rolled back at 09:51. "
    "Orders that had failed were sent again\n"
    "by hand. A second review of such changes is now required. The status page "
    "was updated at 10:30."
)


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (
            "How many vacation days do I get?",
            HANDBOOK,
            "twenty-seven days of paid annual leave",
        ),
        ("What animal bit the horse?", DIARY, "An adder"),
        ("What caused the outage?", REPORT, "doubled the number of connections"),
    ],
)
def test_a_question_in_other_words(
    bundled: Scanner, question: str, text: str, answer: str
) -> None:
    (first,) = bundled.scan(question, text).select(top_k=1)
    assert answer in first.text.replace("\n", " ")


def test_a_text_about_something_else_hardly_answers(bundled: Scanner) -> None:
    def answerable(question: str, text: str) -> float:
        said = bundled.scan(question, text).answerable
        assert said is not None
        return said

    for question, right in (
        ("How many vacation days do I get?", HANDBOOK),
        ("What animal bit the horse?", DIARY),
    ):
        assert answerable(question, right) > UNCLEAR
        assert all(
            answerable(question, text) < 0.15
            for text in (HANDBOOK, DIARY, REPORT)
            if text != right
        )
    assert all(
        answerable("Who won the world cup?", text) < 0.15
        for text in (HANDBOOK, DIARY, REPORT)
    )


def test_the_folder_is_small_enough_for_the_package() -> None:
    folder = Path(locate(None))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 56e6
