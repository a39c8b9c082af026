"""Which documents of a corpus are asked, and which are read."""

from collections.abc import Sequence

import pytest

from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_lab.evaluation.first_stage import collection_of, documents_to_read
from spscanner_lab.evidence.questions import Document, Question
from tests.fakes import ScoredBy

TEXT = "The otter swims. A heron flies. Rain fell all day."


def asked(
    doc_id: str, *questions: str, source: str = "wild", text: str = TEXT
) -> Document:
    own = (
        Question(f"{doc_id}-{number}", query, ((4, 9),))
        for number, query in enumerate(questions)
    )
    return Document(doc_id, source, "", text, tuple(own))


def corpus_of(texts: Sequence[str]) -> SourceCorpus:
    return SourceCorpus(
        "wild",
        [
            Document(str(number), "wild", "", text, ())
            for number, text in enumerate(texts)
        ],
    )


CREATURES = corpus_of(
    [
        "A heron flies. Nothing else moves.",
        "The otter swims in the river.",
        "An otter sleeps. The otter swims where an otter swam.",
        "Rain fell all day.",
        "Snow fell all night.",
        "An otter rests.",
    ]
)


QUERY = "Which otter swims?"


SNOW = ScoredBy(
    lambda query, text, units: [100 * ("Snow" in text) + len(text)] * len(units)
)


@pytest.mark.parametrize(
    ("right", "among", "expected"),
    [
        (3, None, [0, 1, 2, 3, 4, 5]),
        (1, 2, [1, 2]),
        (1, 3, [1, 2, 5]),
        (3, 3, [1, 2, 3]),  # the right one need not be near
        (1, 5, [0, 1, 2, 3, 5]),  # if words do not decide, the order of the corpus does
        (1, 6, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_the_hardest(right: int, among: int | None, expected: list[int]) -> None:
    assert list(collection_of(CREATURES, QUERY, right, among)) == expected


@pytest.mark.parametrize(
    ("stage", "most", "asked", "expected"),
    [
        (None, 1, [1, 3, 4], [1, 3, 4]),
        ("bm25", 3, [1, 3, 4], [1, 3, 4]),  # no more than may be read
        (SNOW, 10, [1, 3, 4], [1, 3, 4]),
        ("bm25", 1, range(6), [2]),
        ("bm25", 2, range(6), [1, 2]),
        ("bm25", 4, range(6), [1, 2, 5]),  # no other document shares a word
        ("bm25", 1, [0, 1, 3, 5], [1]),
        ("bm25", 1, [0, 3, 4], []),
        (SNOW, 2, range(6), [2, 4]),
        (SNOW, 2, [0, 1, 3], [0, 1]),
    ],
)
def test_reading(
    stage: ScoredBy | str | None, most: int, asked: Sequence[int], expected: list[int]
) -> None:
    assert documents_to_read(CREATURES, QUERY, asked, stage, most) == expected
