"""The sentence on who found what."""

import pytest

from spscanner_rag.apps.compare import Comparison, Pick, Retrieval
from spscanner_rag.apps.compare.verdict import verdict
from spscanner_rag.files.documents import TextFile


def compared(*found: tuple[bool, ...], starts: tuple[int, ...] = ()) -> Comparison:
    retrievals = tuple(
        Retrieval(name, 9, (Pick(start, start + 3, 0.5, 1, 1, False),), 0.1, own)
        for name, own, start in zip(
            "abc", found, starts or (0,) * len(found), strict=False
        )
    )
    spans = tuple((number, number + 1) for number in range(len(found[0])))
    return Comparison(
        "?", TextFile("", "One two three."), retrievals, spans, spans, "a"
    )


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            [(True, True), (True, False)],
            "a found both evidence sentences, the first at rank 1; b found 1.",
        ),
        (
            [(True,), (False,), (True,)],
            "a and c each found the evidence sentence at rank 1; b found none.",
        ),
        (
            [(True, False), (False, True)],
            "a and b each found 1 of 2 evidence sentences at rank 1.",
        ),
        ([(False,), (False,)], "No retriever found the evidence sentence."),
        ([(False, False)], "No retriever found any of the 2 evidence sentences."),
        ([(True,) * 3], "a found all 3 evidence sentences, the first at rank 1."),
        ([(True, True)], "a found both evidence sentences, the first at rank 1."),
        (
            [(False, False), (True, False), (False, False)],
            (
                "b found 1 of 2 evidence sentences at rank 1; a found none and c found"
                " none."
            ),
        ),
    ],
)
def test_with_evidence_it_says_who_found_it(
    found: list[tuple[bool, ...]], sentence: str
) -> None:
    assert verdict(compared(*found), "abc"[: len(found)]) == sentence


def test_without_evidence_it_says_whether_they_agree() -> None:
    assert "put the same place first" in verdict(compared((), (), starts=(0, 2)), "ab")
    assert "do not agree" in verdict(compared((), (), starts=(0, 3)), "ab")
    assert "One retriever" in verdict(compared(()), "a")


def test_the_ranks_are_those_of_the_first_evidence_and_the_highest_comes_first() -> (
    None
):
    def asked(
        name: str, *spans: tuple[int, int], found: tuple[bool, bool]
    ) -> Retrieval:
        picks = (
            Pick(*span, 0.5, rank, 1, False) for rank, span in enumerate(spans, start=1)
        )
        return Retrieval(name, 9, tuple(picks), 0.1, found)

    evidence = ((10, 20), (40, 50))
    retrievals = (
        asked("scanner", (0, 5), (30, 35), (12, 18), found=(True, False)),
        asked("bm25", (60, 70), (40, 50), found=(False, True)),
        asked(
            "dense", (49, 60), found=(False, False)
        ),  # it overlaps too little to count as found
    )
    data = Comparison("?", TextFile("", "x" * 80), retrievals, evidence, evidence, "a")
    assert (
        verdict(data, ["scanner", "bm25", "dense"])
        == "bm25 and scanner each found 1 of 2 evidence sentences at ranks 2 and 3;"
        " dense found none."
    )
