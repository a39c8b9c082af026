"""The tools of the server for agents, called by the protocol's own client."""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from spscanner_rag import Scanner
from spscanner_rag.apps.mcp import Library, question_reader
from spscanner_rag.apps.mcp import library as library_module
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.scan.pipeline import Pipeline
from spscanner_rag.system.kept_values import KeptValues
from tests.apps.mcp.conftest import KEEPER, Agent, Silent


@pytest.mark.parametrize(
    "name", ["keeper.txt", "treaty.md", "inner/ship.txt", "inner/../keeper.txt"]
)
async def test_passages_are_verbatim_within_the_tokens(
    name: str, agent: Agent, library: Library, folder: Path
) -> None:
    result = await agent.called(
        "search_document", path=name, question="Who signed?", max_tokens=500
    )
    found, text = result.structured_content, result.content[0].text
    assert library._scanner.count_tokens(text) <= 500
    (document,) = found["documents"]
    whole = (folder / name).read_text()
    assert document["passages"]
    for passage in document["passages"]:
        assert whole[passage["start"] : passage["end"]] == passage["text"]
        assert 0 <= passage["score"] <= 1
        if name == "treaty.md":
            assert passage["cite"] == f"treaty.md, {' > '.join(passage['headings'])}"


async def test_a_page_is_told(
    agent: Agent, folder: Path, pdf_of: Callable[..., bytes]
) -> None:
    (folder / "two.pdf").write_bytes(pdf_of([["It rained."], ["The keeper signed."]]))
    found = await agent("search_document", path="two.pdf", question="Who signed?")
    pages = {
        each["text"]: (each["page"], each["cite"])
        for each in found["documents"][0]["passages"]
    }
    assert pages["The keeper signed."] == ("2", "two.pdf, page 2")


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("search_document", {"path": "keeper.txt"}),
        ("search_document", {"text": KEEPER, "path": None, "cursor": None}),
        ("search_folder", {}),
        ("search_folder", {"folder": "."}),
    ],
)
async def test_cursors_lead_through_all_once(
    tool: str, given: dict[str, object], agent: Agent
) -> None:
    ids, cursor = list[str](), None
    while cursor is not None or not ids:
        given |= {"cursor": cursor}
        found = await agent(tool, question="Who left?", max_tokens=700, **given)
        ids += [
            passage["id"] for each in found["documents"] for passage in each["passages"]
        ]
        cursor = found["cursor"]
        assert bool(cursor) == bool(found["passages_left"])
    assert len(ids) == len(set(ids))
    assert len([one for one in ids if one.startswith(("keeper.txt#", "#"))]) == 5


PASSAGES = [
    ("nonsense", "id: got 'nonsense'"),
    ("../secret.txt#0-5@00000000", "../secret.txt: got no such file"),
    ("out.txt#0-5@00000000", "out.txt: got no such file"),
    ("keeper.txt#0-5@00000000", "keeper.txt has changed"),
    ("#0-5@00000000", "no longer in memory"),
    ("keeper.txt#5-0@e3b0c442", "expected"),
    ("x" * 5000, "4200 characters"),
]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(
            ({"folder": where}, f"{where}: got no such folder")
            for where in ("..", "up", "/", ".hidden", "keeper.txt", "missing")
        ),
        *(({"id": passage}, message) for passage, message in PASSAGES),
        ({"path": "../secret.txt"}, "../secret.txt: got no such file"),
        ({"path": "out.txt"}, "out.txt: got no such file"),
        ({"path": "up/secret.txt"}, "up/secret.txt: got no such file"),
        ({"path": "/etc/passwd"}, "/etc/passwd: got no such file"),
        ({"path": ".hidden.txt"}, ".hidden.txt: got no such file"),
        ({"path": "keeper.txt\0"}, "got no such file"),
        ({"path": "inner"}, "inner: got no such file"),
        ({"path": "k" * 4097}, "4096 characters"),
        ({"path": "picture.bin"}, "picture.bin: got"),
        ({}, "path, text: got neither"),
        ({"path": "keeper.txt", "text": "It rained."}, "path, text: got both"),
        ({"text": " "}, "path, text: got neither"),
        ({"text": ["It rained."]}, "string"),
        ({"path": "keeper.txt", "question": " "}, "question: got ' '"),
        ({"path": "keeper.txt", "question": "x" * 10_001}, "10000 characters"),
        ({"path": "keeper.txt", "max_tokens": 499}, "500"),
        ({"path": "keeper.txt", "max_tokens": 20_001}, "20000"),
        ({"path": "keeper.txt", "cursor": "next"}, "cursor: got 'next'"),
    ],
)
async def test_what_cannot_be_read_is_refused_by_name(
    given: dict[str, object], message: str, agent: Agent
) -> None:
    tool = {"folder": "search_folder", "id": "read_passage"}.get(
        next(iter(given), ""), "search_document"
    )
    asked = {} if "id" in given else {"question": "Who left?"}
    refused = await agent.refused(tool, **asked | given)
    assert message in refused
    assert "secret" not in refused.replace(message.partition(":")[0], "")


async def test_a_folder_is_one_collection_and_says_what_it_left_out(
    agent: Agent,
) -> None:
    found = await agent(
        "search_folder", question="Who signed the treaty?", max_tokens=20_000
    )
    assert {each["path"] for each in found["documents"]} == {
        "treaty.md",
        "keeper.txt",
        "inner/ship.txt",
    }
    assert found["documents_read"] == 3
    assert "secret" not in str(found["documents"])
    assert any("out.txt" in note for note in found["not_read"])


@pytest.mark.parametrize(
    ("limit", "value"), [("FOLDER_FILES", 2), ("FOLDER_CHARACTERS", 105)]
)
async def test_many_files(
    limit: str, value: int, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_module, limit, value)
    found = await agent("search_folder", question="Who left?")
    assert found["documents_read"] == 2
    assert any("too much in one folder" in note for note in found["not_read"])


def embed(texts: Sequence[str]) -> list[list[float]]:
    """One dimension for each group of words with like meaning."""
    like = (("vessel", "sank"), ("writ", "wrote"))
    return [
        [0.01, *(float(any(word in text.lower() for word in group)) for group in like)]
        for text in texts
    ]


MEANING = Meaning(TextEncoder(embed), MeaningWeights(sentence=10.0))


@pytest.mark.parametrize(
    ("question", "meaning", "first"),
    [
        ("Who swam?", None, "inner/ship.txt"),
        ("What rang?", None, "keeper.txt"),
        ("treaty weather", None, "treaty.md"),
        ("Vessels?", MEANING, "inner/ship.txt"),  # no document names this word
        ("Any writer?", MEANING, "keeper.txt"),
    ],
)
async def test_of_more_than_is_read_the_likeliest_documents_are(
    question: str,
    meaning: Meaning | None,
    first: str,
    agent: Agent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(question_reader, "READ_TOKENS", 5)
    monkeypatch.setattr(Scanner, "meaning", meaning)
    found = await agent("search_folder", question=question)
    assert [each["path"] for each in found["documents"]] == [first]
    assert found["not_read"][0].startswith("2 documents that are less likely")
    # only the best by words is left to choose from
    monkeypatch.setattr(question_reader, "COMPARED_TOKENS", 5)
    again = await agent(
        "search_folder", question=question + " The keeper wrote the date?"
    )
    assert [each["path"] for each in again["documents"]] == ["keeper.txt"]


async def test_a_cursor_is_bound_to_question_and_content(
    agent: Agent, folder: Path
) -> None:
    asked: dict[str, Any] = {"question": "Who left?", "max_tokens": 500}
    cursor = (await agent("search_document", path="keeper.txt", **asked))["cursor"]
    of_folder = (await agent("search_folder", **asked | {"max_tokens": 700}))["cursor"]
    for other in (
        {"path": "treaty.md"},
        {"path": "keeper.txt", "question": "Why?"},
        {"text": KEEPER},
    ):
        refused = await agent.refused(
            "search_document", **asked | other | {"cursor": cursor}
        )
        assert "of another question or document" in refused
    with (folder / "keeper.txt").open("a") as file:
        file.write(" It snowed.")
    for tool, given in (
        ("search_document", {"path": "keeper.txt", "cursor": cursor}),
        ("search_folder", {"cursor": of_folder}),
    ):
        assert "one that has changed" in await agent.refused(tool, **asked | given)


async def test_a_known_question_needs_no_reading(
    agent: Agent, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[object] = []
    run = Pipeline.run

    def counted(*requests: Any, **options: Any) -> Any:
        scans.append(requests)
        return run(*requests, **options)

    monkeypatch.setattr(Pipeline, "run", counted)
    answers = [
        await agent("search_document", path="keeper.txt", question="Who left?")
        for _ in range(10)
    ]
    assert len(scans) == 1
    assert all(answer == answers[0] for answer in answers)


async def test_what_is_read_takes_part_in_what_is_kept(
    agent: Agent, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[object] = []
    planned = Pipeline.planned

    def noted(*arguments: Any, **options: Any) -> Any:
        reads.append(arguments[-1])
        return planned(*arguments, **options)

    monkeypatch.setattr(Pipeline, "planned", noted)
    asked = {"path": "keeper.txt", "question": "Who left?"}
    for read in ("auto", "all", "auto", 1, "all", None):
        await agent("search_document", **asked, read=read)
    assert reads == ["auto", "all", 1.0]
    await agent("search_folder", question="Who left?", read="all")
    assert reads[3:] == ["all"]
    found = await agent("search_document", **asked, read="all", max_tokens=500)
    if found["cursor"] is not None:
        message = await agent.refused(
            "search_document", **asked, cursor=found["cursor"]
        )
        assert "cursor: got" in message


def test_what_is_kept_is_counted_in_bytes(library: Library) -> None:
    reader = library._reader
    context: Any = Silent()

    async def ask(number: int) -> None:
        text = f"It rained on day {number}. He left."
        await library.search_document("Who left?", context, text=text)

    async def ask_all(numbers: range) -> None:
        for number in numbers:
            await ask(number)

    asyncio.run(ask_all(range(20)))
    tracemalloc.start()
    kept_before = reader._scores.bound.total
    before = tracemalloc.get_traced_memory()[0]
    asyncio.run(ask_all(range(20, 60)))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken <= (reader._scores.bound.total - kept_before)


@pytest.mark.parametrize("given", [{"path": "keeper.txt"}, {"text": KEEPER}])
async def test_a_passage_with_its_neighbours(
    given: dict[str, str], agent: Agent, library: Library, folder: Path
) -> None:
    found = await agent("search_document", question="dry well", **given)
    well = next(
        one
        for one in found["documents"][0]["passages"]
        if one["text"] == "The well was dry."
    )
    alone = await agent("read_passage", id=well["id"], neighbours=0)
    assert alone["text"] == well["text"]
    one = await agent("read_passage", id=well["id"], neighbours=1)
    assert one["text"] == "He signed the treaty. The well was dry. A bell rang twice."
    assert (await agent("read_passage", id=one["id"], neighbours=50))["text"] == KEEPER
    (folder / "keeper.txt").write_text("Changed. " + KEEPER)
    library._reader._texts = KeptValues()
    message = await agent.refused("read_passage", id=well["id"])
    assert (
        "keeper.txt has changed" if "path" in given else "no longer in memory"
    ) in message


@pytest.mark.parametrize("words", ["x" * 5000, "Ω" * 3000, "東京" * 2000])
async def test_a_sentence_longer_than_the_answer_is_cut_and_goes_on(
    words: str, agent: Agent
) -> None:
    found = await agent(
        "search_document", text=words, question="Which ship?", max_tokens=500
    )
    part = found["documents"][0]["passages"][0]
    end = part["end"]
    for _ in range(3):
        assert words[part["start"] : part["end"]] == part["text"]
        part = await agent(
            "read_passage", id=part["rest"], neighbours=0, max_tokens=500
        )
        assert part["start"] == end
        end = part["end"]
