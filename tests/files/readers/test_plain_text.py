"""Markdown, tables, logs and conversations: unchanged text, and its blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag import Scanner
from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.markdown import blocks_of, read_markdown
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.fakes import EQUAL

BOOK = """---
title: A book
---
# Terms

Intro text here. Second one.

## Prices ##

| Item | Price |
|------|------:|
| Nut  | 3     |
| Bolt | 4     |

- first item
- second item
  goes on

```py
x = 1

# no heading
```

Two lines
of a heading
------------
> quoted text
"""


def blocks_shown(text: str) -> list[tuple[str, str]]:
    blocks = [block for block in blocks_of(text) if block.kind != "markup"]
    return [(block.kind, text[block.start : block.end]) for block in blocks]


def test_blocks_of_a_page() -> None:
    assert blocks_shown(BOOK) == [
        ("fence", "---\ntitle: A book\n---"),
        ("heading", "# Terms"),
        ("heading", "## Prices ##"),
        ("row", "| Item | Price |\n|------|------:|"),
        ("row", "| Nut  | 3     |"),
        ("row", "| Bolt | 4     |"),
        ("item", "- first item"),
        ("item", "- second item\n  goes on"),
        ("fence", "```py\nx = 1\n\n# no heading\n```"),
        ("heading", "Two lines\nof a heading\n------------"),
        ("item", "> quoted text"),
    ]
    headings = [
        (block.level, block.title)
        for block in blocks_of(BOOK)
        if block.kind == "heading"
    ]
    assert headings == [(1, "Terms"), (2, "Prices"), (2, "Two lines of a heading")]
    rows = [block for block in blocks_of(BOOK) if block.kind == "row"]
    (header,) = {block.header for block in rows if block.header is not None}
    assert BOOK[slice(*header)] == "| Item | Price |"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1. step\n\n   ```\n   # no\n   ```\n\n   more\n\nrest",
            ["item|1. step", "fence|```\n   # no\n   ```", "item|more"],
        ),
        (
            "text\n| a | b |\n|---|:-:|\n| 1 | 2 |\nc\n\nd",
            ["row|| a | b |\n|---|:-:|", "row|| 1 | 2 |", "row|c"],
        ),
        (
            "> # T #\n> a\n> b\n\n>> c",
            ["heading|> # T #", "item|> a\n> b", "item|>> c"],
        ),
        (
            "<!-- \n# no\n-->\n# yes\n<div>\n- no\n\n- yes",
            ["heading|# yes", "item|- yes"],
        ),
        ("    code\n\n    # code\ntext\n    text", ["fence|code\n\n    # code"]),
        ("```\nnever closed\n# no", ["fence|```\nnever closed\n# no"]),
    ],
)
def test_blocks_are_those_of_commonmark(text: str, expected: list[str]) -> None:
    assert ["|".join(block) for block in blocks_shown(text)] == expected


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_positions_are_those_of_the_file(ending: str) -> None:
    text = BOOK.replace("\n", ending)
    found = read_markdown(b"\xef\xbb\xbf" + text.encode())
    assert found.text == text
    if ending == "\r\n":
        expected = [part.replace("\n", ending) for _, part in blocks_shown(BOOK)]
        blocks = [block for block in found.blocks if block.kind != "markup"]
        assert [text[block.start : block.end] for block in blocks] == expected


@given(st.text(alphabet="#|-`>* \n\r\tab1.~=", max_size=200))
def test_blocks_are_in_order_and_disjoint_and_trimmed(text: str) -> None:
    end = 0
    for block in blocks_of(text):
        if block.kind == "markup":  # lies within others
            continue
        assert end <= block.start < block.end <= len(text)
        assert text[block.start : block.end] == text[block.start : block.end].strip()
        assert block.header is None or block.header[1] <= block.start
        end = block.end


def units_of(name: str, text: str) -> tuple[TextFile, list[Unit]]:
    document = read_bytes(name, text.encode())
    return document, segment_blocks(
        document.text, document.blocks, SentenceSegmenter().segment
    )


def shown(name: str, text: str) -> list[str]:
    document, units = units_of(name, text)
    return [document.text[unit.start : unit.end] for unit in units]


@pytest.mark.parametrize(
    ("name", "text", "rows", "header"),
    [
        ("a.csv", "part,price\nnut,3\nbolt,4\n", ["nut,3", "bolt,4"], "part,price"),
        (
            "a.csv",
            'part;note;price\nnut;"two\nlines";3,50',
            ['nut;"two\nlines";3,50'],
            "part;note;price",
        ),
        (
            "a.tsv",
            "part\t2019\t2020\nnut\tlow\thigh\n",
            ["part\t2019\t2020", "nut\tlow\thigh"],
            "part\t2019\t2020",
        ),
        ("a.tsv", "nut\t3\r\nbolt\t4\r\n", ["nut\t3", "bolt\t4"], None),
        (
            "a.csv",
            "Signed on,3 May 1811\nRent,40 marks\n",
            ["Signed on,3 May 1811", "Rent,40 marks"],
            None,
        ),
        ("a.csv", "one\ntwo\n\nthree", ["one", "two", "three"], None),
        ("a.csv", "part,price\n", ["part,price"], None),
        (
            "a.csv",
            "part,maker_id\nNut,Hale\nBolt,Reed\n",
            ["Nut,Hale", "Bolt,Reed"],
            "part,maker_id",
        ),
        ("a.csv", "Stock\npart,price\nnut,3\n", ["Stock", "nut,3"], None),
        ("a.csv", "sep=;\npart;price\nnut;3\n", ["sep=;", "nut;3"], None),
        (
            "a.csv",
            'a,1\n"never closed,2\n' + "b,3\n" * 60,
            ["a,1", '"never closed,2', *["b,3"] * 60],
            None,
        ),
        ("a.csv", 'a,1\n"' + "x" * 200_000, None, None),
    ],
)
def test_rows_are_read_with_headers(
    name: str, text: str, rows: list[str] | None, header: str | None
) -> None:
    document, units = units_of(name, text)
    assert document.text == text
    assert rows is None or [text[unit.start : unit.end] for unit in units] == rows
    assert header is None or all(header in unit.model_text for unit in units)


@pytest.mark.parametrize(
    "text",
    [
        "start\n|failed: no disk\n  at read\n\tat main\n|end",
        "10:01 start\n|10:02 failed: no disk\n  at read\n\tat main\n|10:03 end",
        (
            "2021-05-03 10:01:07,1 E no\nTraceback:\n  x()\nValueError: y\n|2021-05-03"
            " 10:01:08,3 I up"
        ),
        "[03/May/2021:10:01:07] E no\nCaused by: x\n\tat y\n|[03/May/2021:10:01:09] up",
        "10:01:07,3 E no\nTraceback:\n  x()\nValueError: y\n|10:01:08,3 I up",
        "May  3 10:01:07 a b: no\nsecond\n|May  3 10:01:09 a b: up",
    ],
)
def test_an_entry_of_a_log_is_a_unit(text: str) -> None:
    assert shown("a.log", text.replace("|", "")) == [
        entry.strip() for entry in text.split("|")
    ]
    assert max(map(len, shown("a.log", "a\n" + " b\n" * 2_000))) <= 1_000


def test_a_table_in_utf_16_is_read() -> None:
    found = read_bytes("a.csv", "part\tprice\nnüt\t3\n".encode("utf-16"))
    assert found.text == "part\tprice\nnüt\t3\n"
    with pytest.raises(ValueError, match="not UTF-16"):
        read_bytes("a.csv", b"\xff\xfea")


CUES = (
    "00:31.000 --> 00:33.5\n{}\n\n1\n00:40.000 --> 00:44.000 line:0\n{}\n\n01:00:02.000"
    " --> 01:00:03.000\n{}\n"
)


@pytest.mark.parametrize(
    ("name", "text", "turns"),
    [
        (
            "a.vtt",
            "WEBVTT\n\nNOTE a note\nof lines\n\n"
            + CUES.format(
                "<v Ann>Who <b>left</b>?</v>", "<v Bob>I &amp;", "<v Bob>she."
            ),
            ["00:00:31 Ann: Who left?", "00:00:40 Bob: I & she."],
        ),
        (
            "a.vtt",
            CUES.format("Ann Hale: Who?", "Where to?", "Bob: Out."),
            ["00:00:31 Ann Hale: Who? Where to?", "01:00:02 Bob: Out."],
        ),
        (
            "a.vtt",
            CUES.format("I left", "at noon.", "It rained."),
            ["00:00:31 I left at noon.", "01:00:02 It rained."],
        ),
        (
            "a.vtt",
            CUES.format("I left", "I left\nat noon.", "at noon."),
            ["00:00:31 I left at noon."],
        ),
        (
            "a.vtt",
            (
                "00:09.000 --> 00:10.000\n<v Ann>Late.\n\n00:01.000 --> 00:02.000\n<v"
                " Bob>Early."
            ),
            ["00:00:09 Ann: Late.", "00:00:01 Bob: Early."],
        ),
        (
            "a.srt",
            (
                "1\n00:00:01,000 --> 00:00:02,000\nANN: Who?\n2\n00:00:03,000 -->"
                " 00:00:04,000\n- BOB: {\\an8}Me."
            ),
            ["00:00:01 ANN: Who?", "00:00:03 BOB: Me."],
        ),
    ],
)
def test_a_turn_of_subtitles_is_a_unit(name: str, text: str, turns: list[str]) -> None:
    document, units = units_of(name, text)
    assert [document.text[unit.start : unit.end] for unit in units] == turns
    labels = [document.section(unit.start) for unit in units]
    assert all(
        turn.startswith(label) for turn, label in zip(turns, labels, strict=True)
    )


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        (
            (
                "[00:00:31] Ann: Who left?\nAnd why?\n[00:00:40] Bob: I"
                " did.\n[00:00:44] Ann: Oh."
            ),
            ["00:00:31 Ann", "00:00:40 Bob", "00:00:44 Ann"],
        ),
        (
            (
                "Ann Hale  0:31\nWho left?\n\nBob  0:40\nI did. I had to.\n\nAnn Hale "
                " 1:02\nOh."
            ),
            ["0:31 Ann Hale", "0:40 Bob", "1:02 Ann Hale"],
        ),
        (
            "Ann (10:31 AM): hi\nBob (10:32 AM): hello\nAnn (10:33 AM): bye",
            ["10:31 AM Ann", "10:32 AM Bob", "10:33 AM Ann"],
        ),
        (
            (
                "3/5/24, 10:31 - Ann: hi\n3/5/24, 10:32 - Bob: ho\n3/5/24, 10:33 -"
                " Ann: bye"
            ),
            [
                f"3/5/24, 10:3{n} {who}"
                for n, who in ((1, "Ann"), (2, "Bob"), (3, "Ann"))
            ],
        ),
        (
            "10:31 <ann> hi\n10:32 <bob> ho\n10:33 <ann> bye",
            ["10:31 ann", "10:32 bob", "10:33 ann"],
        ),
        (
            (
                "10:31 <@ann> hi\n10:32 * bob|away waves\n10:33 - ~ Ann: bye\n10:34"
                " From Ann B to Everyone : oh"
            ),
            ["10:31 ann", "10:32 bob|away", "10:33 Ann", "10:34 Ann B"],
        ),
        (
            "Ann: Who?\n\nAnd why?\n\nBob: Me.\n\nAnn: Oh.\n\nBob: So.",
            ["Ann", "Ann", "Bob", "Ann", "Bob"],
        ),
        (
            (
                "2024-03-05 10:01 3 disks.\n2024-03-05 10:02 sdb, full.\n2024-03-05"
                " 10:03 2 left."
            ),
            [f"2024-03-05 10:0{n}" for n in (1, 2, 3)],
        ),
        (
            "Ann: Who?\nBob: Me.\nAnn: Why?\nBob: So.\n\nThey left. It rained.",
            ["Ann", "Bob", "Ann", "Bob", "", ""],
        ),
    ],
)
def test_a_turn_of_a_plain_text_is_a_unit(text: str, labels: list[str]) -> None:
    document, units = units_of("a.txt", text)
    assert document.text == text
    assert [document.section(unit.start) for unit in units] == labels


@pytest.mark.parametrize(
    "text",
    [
        "Tenant: Anne\nRent: forty\nSigned: in May\nTerm: ten years\n",
        "At 10:30 they met. Note: it rained.\nThe end.\n",
        (
            "Programme\n\n9:00 Opening\n\nThe mayor speaks. She opens the hall.\n\nThen"
            " there is tea.\n"
        ),
    ],
)
def test_other_text_has_no_turns(text: str) -> None:
    assert read_bytes("a.txt", text.encode()).blocks == ()


def test_later_paragraphs_of_a_turn_are_cut_once_and_read_with_its_speaker() -> None:
    said = "It rained all day long. " * 20
    text = f"Ann: {said}\n\n{said}\n\nBob: Oh.\n\nAnn: So.\n\nBob: No.\n\nAnn: Yes."
    _, units = units_of("a.txt", text)
    assert len(units) == 44
    assert [unit.start for unit in units] == sorted({unit.start for unit in units})
    assert all(unit.model_text.strip().startswith("Ann:") for unit in units[:40])


def test_each_part_of_a_long_turn_is_read_with_its_speaker(
    tiny_scanner: Scanner,
) -> None:
    text = "".join(
        f"[0{n}:00] {who}: {'It rained all day long. ' * 20}\n"
        for n, who in enumerate(("Ann", "Bob", "Cid"))
    )
    document, units = units_of("a.txt", text)
    assert len(units) == 60
    assert EQUAL.units_of(text) == units  # type: ignore[arg-type]
    assert [unit[:2] for unit in tiny_scanner.units_of(text)] == [
        unit[:2] for unit in units
    ]
    for unit in units:
        speaker = document.section(unit.start)[-3:]
        assert unit.model_text.strip().startswith(
            f"[0{'ABC'.index(speaker[0])}:00] {speaker}:"
        )
        assert text[unit.start : unit.end].endswith("It rained all day long.")


@given(
    st.sampled_from("csv tsv log vtt srt txt".split()),
    st.text(alphabet='ab ,"\n\r\t:01<>-.', max_size=80),
)
def test_any_text_keeps_its_places(ending: str, text: str) -> None:
    try:
        document, units = units_of(f"a.{ending}", text)
    except ValueError:
        return
    end = 0
    for unit in units:
        assert end <= unit.start < unit.end <= len(document.text)
        end = unit.end
    assert ending in ("vtt", "srt") or document.text == text


def test_the_number_of_a_cue_is_left_out_and_a_spoken_one_is_not() -> None:
    """Some files have no blank line between two cues."""
    cues = (
        b"1\n00:00:01,000 --> 00:00:02,000\nHow many?\n42\nor so.\n"
        b"2\n00:00:03,000 --> 00:00:04,000\nYes.\n"
    )
    text = read_bytes("a.srt", cues).text
    assert text.splitlines() == [
        "00:00:01 How many?",
        "00:00:01 42 or so.",
        "00:00:03 Yes.",
    ]
