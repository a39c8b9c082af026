"""Starts of sentences that are none: after a run-in heading, within an enumeration."""

import pytest

from spscanner_rag.text.false_starts import _markers_before
from spscanner_rag.text.segmentation import SentenceSegmenter


def sentences(text: str) -> list[str]:
    return [
        text[unit.start : unit.end] for unit in SentenceSegmenter("en").segment(text)
    ]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("8. Logo Rights. He may use it. He stops.", "8. Logo Rights. He may use it."),
        ("(a) Patent License. He may use it.", "(a) Patent License. He may use it."),
        (
            "Section 4.2 Term. It ends in May. It rains.",
            "Section 4.2 Term. It ends in May.",
        ),
        ("**Term and Renewal.** It ends. It rains.", "**Term and Renewal.** It ends."),
        ("3. NO WAIVER. He pays. She does.", "3. NO WAIVER. He pays."),
        (
            "8. Logo Rights.\nHe may use it. He stops.",
            "8. Logo Rights.\nHe may use it.",
        ),
        ("The mill .....23\n\nThe wheel .....24", "The mill .....23"),
        ("Rain Fell. He may use it.", "Rain Fell."),
        ("8. He may use it. She stops.", "8. He may use it."),
        ("7. Term.\n8. Fees. He pays.", "7. Term."),
        (
            "If he wins, or\n(c) a year goes by. It rains.",
            "If he wins, or\n(c) a year goes by.",
        ),
        (
            "If (a) he wins, (b) she wins, or\n(c) a year goes by. It rains.",
            "If (a) he wins, (b) she wins, or\n(c) a year goes by.",
        ),
        ("He shall\n(a) pay,\n(b) leave.", "He shall"),
    ],
)
def test_the_first_sentence(text: str, first: str) -> None:
    assert sentences(text)[0] == first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is 12 m. He left.", ["It is 12 m.", "He left."]),
        ("It took 3 h. He left.", ["It took 3 h.", "He left."]),
        ("It is 20 °C. He left.", ["It is 20 °C.", "He left."]),
        ("On 5 J. Reed left.", ["On 5 J. Reed left."]),
        ("Hale Ltd. Nobody left.", ["Hale Ltd.", "Nobody left."]),
        (
            "He lives in the U.S. However, he left.",
            ["He lives in the U.S.", "However, he left."],
        ),
        ("● One apple. It is red.\n■ Two.", ["● One apple.", "It is red.", "■ Two."]),
        (
            "He knew it was\n\fsigned. It rained.",
            ["He knew it was\n\fsigned.", "It rained."],
        ),
        ("It burned.\fIt rained.", ["It burned.", "It rained."]),
    ],
)
def test_ends_of_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("marker", "before"),
    [
        ("a", []),
        ("b", ["a"]),
        ("1", []),
        ("12", ["11"]),
        ("i", []),
        ("iii", ["ii"]),
        ("v", ["iv", "u"]),  # Roman, or a letter
        ("j", ["i"]),
    ],
)
def test_the_marker_that_comes_before_another(marker: str, before: list[str]) -> None:
    assert _markers_before(marker) == before


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("“船正午开。”他说。第二天下雨了。", "“船正午开。”他说。"),
        ("“没人等吗？”她问道。没有。", "“没人等吗？”她问道。"),
        ("“走吧！”第二天他们走了。", "“走吧！”"),
        ("「船は出る。」と彼は言った。雨が降った。", "「船は出る。」と彼は言った。"),
        ("「船は出る。」次の日、雨が降った。", "「船は出る。」"),
        ("「船は出る。」とても寒い日だと思った。", "「船は出る。」"),
    ],
)
def test_who_says_what_is_quoted_belongs_to_it(text: str, first: str) -> None:
    unit = SentenceSegmenter().segment(text)[0]
    assert text[unit.start : unit.end] == first
