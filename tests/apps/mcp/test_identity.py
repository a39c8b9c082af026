"""Ids of passages are bound to the whole text, which nobody else can name."""

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from spscanner_rag.apps.mcp.identity import Identities
from spscanner_rag.files.documents import TextFile
from tests.apps.mcp.conftest import Agent

BEGINNING = "The keeper signed it."
OTHERS = [
    BEGINNING,
    f"{BEGINNING} It rained.",
    f"{BEGINNING} My password is hunter2.",
    f"{BEGINNING}\n\nMy password is hunter3.",
    f"{BEGINNING} My password is hunter2. ",
    f"{BEGINNING} {BEGINNING}",
    f"{BEGINNING}\n",
    f" {BEGINNING}",
    f"{BEGINNING}\ud800",
    f"{BEGINNING}\x00",
    f"{BEGINNING[:-1]}!",
]


def test_every_text_has_its_own_mark_under_every_key() -> None:
    marks = {
        Identities().of(TextFile("", text)).mark for text in OTHERS for _ in range(3)
    }
    assert len(marks) == 3 * len(OTHERS)


@pytest.mark.parametrize("other", OTHERS)
async def test_an_id_never_reads_from_another_text(other: str, agent: Agent) -> None:
    secret = f"{BEGINNING} The vault opens with 7391."
    await agent("search_document", text=secret, question="Who signed?")
    if other.encode(errors="replace").decode() != other:
        return  # cannot be sent
    found = await agent("search_document", text=other, question="Who signed?")
    for passage in found["documents"][0]["passages"]:
        place = await agent("read_passage", id=passage["id"], neighbours=50)
        assert "7391" not in place["text"]
        assert place["text"] in other


@pytest.mark.parametrize(
    "forged",
    [
        "#0-21@00000000",
        "#0-21@" + "A" * 22,
        "#0-46@{mark}x",
        "#0-99@{mark}",
        "#21-0@{mark}",
        "#0-0@{mark}",
        "x#0-21@{mark}",
        "keeper.txt#0-21@{mark}",
        "#0-21@{lower}",
        "#\u0660-\u0662@{mark}",
    ],
)
async def test_a_forged_id_reads_nothing(forged: str, agent: Agent) -> None:
    found = await agent("search_document", text=BEGINNING, question="Who signed?")
    mark = found["documents"][0]["passages"][0]["id"].rpartition("@")[2]
    other_case = mark.swapcase()
    wrong = forged.format(mark=mark, lower=other_case)
    refused = await agent.refused("read_passage", id=wrong)
    assert "signed it" not in refused
