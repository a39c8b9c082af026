"""A comparison as a page, where every highlight is a pick and text stays text."""

import re
from dataclasses import replace
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.compare import compare
from spscanner_rag.apps.compare.page import CONTEXT, LONGEST, render_comparisons
from spscanner_rag.apps.pages.html_page import readable
from spscanner_rag.files.documents import PageStart, TextFile
from spscanner_rag.text.escaping import one_line, visible
from tests.apps.compare.fakes import comparison_of, prefers
from tests.apps.pages.checked_page import WORDS, CheckedPage, check_page, text_of
from tests.fakes import words


def many_sentences(number: int) -> str:
    return "\n".join(f"Sentence {each} stands here." for each in range(number))


def picks_on(page: CheckedPage) -> dict[str, tuple[str, str, str]]:
    """The text before each pick, the pick and the text after it, by the pick's id."""
    found = {}
    for item in page.root.iter("li"):
        for whole in (
            item.findall("span[@class='whole']") if "id" in item.attrib else ()
        ):
            (place,) = [
                place
                for place, each in enumerate(whole)
                if each.get("class") in ("pick", "only")
            ]
            before, after = whole.text or "", whole[place].tail or ""
            before += "".join(
                text_of(each) + (each.tail or "") for each in whole[:place]
            )
            after += "".join(
                text_of(each) + (each.tail or "") for each in whole[place + 1 :]
            )
            found[item.attrib["id"]] = before, text_of(whole[place]), after
    return found


def around(text: str, start: int, end: int) -> tuple[str, str, str]:
    before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
    before, after = (
        "…" * (start > CONTEXT) + before,
        after + "…" * (end + CONTEXT < len(text)),
    )
    return visible(before), visible(readable(text[start:end])), visible(after)


@given(st.lists(WORDS, min_size=1, max_size=60).map(" ".join).filter(str.strip))
def test_every_pick_is_shown_with_what_is_around_it(text: str) -> None:
    comparison = comparison_of(text)
    assert picks_on(check_page(comparison.page)) == {
        f"p1-{column}-{pick.rank}": around(text, pick.start, pick.end)
        for column, retrieval in enumerate(comparison.retrievals, start=1)
        for pick in retrieval.picks
    }


def test_who_found_the_evidence_and_who_missed_it() -> None:
    text = "One is here. Two is there. Three is gone. Four came back."
    scorers = {"a": prefers([0]), "b": prefers([0], "document")}
    page = check_page(
        compare(
            "Who?", text, scorers, top_k=1, evidence=[(4, 19)], count_tokens=words
        ).page
    )
    (listed,) = page.all("ul", "evidence")
    assert [text_of(each).replace("\n", "") for each in listed] == [
        (
            "line 1 · at 0 % · found by a, bOne is here. Two is there. Three is gone."
            " Four came back."
        ),
        (
            "line 1 · at 23 % · found by b · missed by aOne is here. Two is there."
            " Three is gone. Four came back."
        ),
    ]
    column = [
        text_of(each)
        for each in page.all("td")
        if each.get("data-head") == "Evidence sentences found"
    ]
    assert column == ["1 of 2 1 missed", "2 of 2"]


def test_what_only_one_found_is_marked_and_listed_under_it() -> None:
    comparison = comparison_of(many_sentences(2000), top_k=16)
    page = check_page(comparison.page)
    only, everything = page.all("div", "lists")
    items = list(everything.iter("li"))
    marked = {
        item.attrib["id"]: any(each.get("class") == "only" for each in item.iter())
        for item in items
    }
    for column, (retrieval, own) in enumerate(
        zip(comparison.retrievals, only, strict=True), start=1
    ):
        alone = [pick.rank for pick in retrieval.picks if pick.only]
        assert [int(text_of(rank)) for rank in own.iter("b")] == alone[:10]
        more = re.findall(r"and (\d+) more", text_of(own))
        assert [int(number) for number in more] == (
            [len(alone) - 10] if len(alone) > 10 else []
        )
        assert all(
            marked[f"p1-{column}-{pick.rank}"] == pick.only for pick in retrieval.picks
        )
    assert set(marked.values()) == {True, False}


def test_the_strips_show_where_the_picks_lie() -> None:
    text = many_sentences(1000)
    comparison = comparison_of(text, top_k=4, evidence=[(0, 5), (20_000, 20_010)])
    strips = list(check_page(comparison.page).all("svg", "strip"))
    for column, (strip, retrieval) in enumerate(
        zip(strips, comparison.retrievals, strict=True), start=1
    ):
        ticks = {tick.attrib["href"]: tick[1].attrib for tick in strip.iter("a")}
        assert len(ticks) == len(retrieval.picks)
        for pick in retrieval.picks:
            left, width = (
                float(ticks[f"#p1-{column}-{pick.rank}"][name])
                for name in ("x", "width")
            )
            assert left + width / 2 == pytest.approx(
                500 * (pick.start + pick.end) / len(text), abs=2.5
            )
        bars = [
            each.get("class")
            for each in strip.iter("rect")
            if each.get("class") in ("found", "missed")
        ]
        assert [bar == "found" for bar in bars] == list(retrieval.found)


def test_the_page_begins_with_the_best_three_of_each_side_by_side() -> None:
    text = many_sentences(300)
    comparison = comparison_of(text, top_k=5)
    page = check_page(comparison.page)
    wanted = [
        (f"c{column}", str(rank), one_line(text[pick.start : pick.end][:600]))
        for rank in (1, 2, 3)
        for column, retrieval in enumerate(comparison.retrievals, start=1)
        for pick in retrieval.picks[rank - 1 : rank]
    ]

    def card(element: Element) -> tuple[str, str, str]:
        _, (facts, quote) = element
        return (
            element.attrib["class"].split()[1],
            text_of(facts[0]),
            text_of(quote).rstrip("…"),
        )

    assert [card(each) for each in page.all("div", "card") if len(each)] == wanted
    first = comparison.retrievals[0].picks[0]
    line, share = text.count("\n", 0, first.start) + 1, 100 * first.start / len(text)
    facts = text_of(next(page.all("div", "card"))[1][0])
    assert facts.startswith(f"1 {first.score:.3f} · line {line:,} · at {share:.0f} %")
    parts = [text_of(each) for each in page.all("h3", "part")]
    assert parts == [
        "The best 3 of each",
        "What only one retriever found",
        "Everything",
    ]


def test_the_page_of_a_long_document_is_small() -> None:
    scorers = {"a": prefers([0], "document"), "b": prefers([0])}
    text = "A sentence of some words stands here, and it is as long as most. " * 20_000
    comparison = compare(
        "Who?",
        text,
        scorers,
        top_k=50,
        evidence=[(1_000_000, 1_000_100)],
        count_tokens=len,
    )
    assert len(comparison.page) < 150_000
    assert "is as long as most. …" not in comparison.page
    assert (
        picks_on(check_page(comparison.page))["p1-1-1"][1]
        == text[:LONGEST].rstrip() + "…"
    )


def test_several_documents_have_a_section_each_under_short_names() -> None:
    paths = ["/home/someone/papers/2024/a.txt", "/home/someone/papers/2025/a.txt"]
    texts = ["One here. Two there.", "Three."]
    shown = [
        comparison_of(text, path=path) for text, path in zip(texts, paths, strict=True)
    ]
    page = check_page(render_comparisons(shown))
    assert [each.attrib["id"] for each in page.all("section")] == ["all", "d1", "d2"]
    cards = [text_of(each) for each in page.all("p", "from")]
    assert set(cards) == {"2024/a.txt", "2025/a.txt"}
    assert picks_on(page)["p2-1-1"] == ("", "Three.", "")
    headings = [text_of(each) for each in page.root.iter("h2")]
    assert headings == ["2024/a.txt 20 characters", "2025/a.txt 6 characters"]


def test_the_only_document_with_picks_does_not_repeat_the_best_of_all() -> None:
    shown = [
        comparison_of(text, path=path)
        for text, path in (("One. Two.", "a.txt"), ("", "b.txt"))
    ]
    page = check_page(render_comparisons(shown))
    assert [text_of(each) for each in page.all("h3", "part")].count(
        "The best 3 of each"
    ) == 0
    assert len(list(page.all("div", "card"))) == 3 * 2


@pytest.mark.parametrize(("label", "said"), [("{}", "page 2"), ("a{}", "page a2 (2)")])
def test_pages_are_told_instead_of_lines(label: str, said: str) -> None:
    text = "One is here. Two is there."
    pages = tuple(
        PageStart(start, number, label.format(number))
        for number, start in ((1, 0), (2, 13))
    )
    located = replace(
        comparison_of(text), document=TextFile("a.pdf", text, pages=pages)
    )
    facts = [
        text_of(each)
        for each in check_page(render_comparisons([located])).all("span", "facts")
    ]
    assert any(said in each for each in facts)
    assert not any("line" in each for each in facts)
