"""The middleware in an agent: a scripted model, long results, a checkpointer."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip(
    "langchain.agents", reason="the extra langchain-agents is not installed"
)

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_spscanner import SPScannerToolCompressionMiddleware
from tests.integrations.hosts import WordScorer

FILLER = "It rained on the hills that day. Nobody came to the door. "
REPORT = FILLER * 20 + "Captain Moore signed the treaty. " + FILLER * 20
SIGNED = "Captain Moore signed the treaty."
START = REPORT.index(SIGNED)
QUESTION = "Who signed the treaty?"
IMAGE = {"type": "image", "base64": "aGk=" * 4000, "mime_type": "image/png"}


class Scripted(BaseChatModel):
    """A model that follows its script, one line per turn."""

    script: list[AIMessage]
    seen: list[list[BaseMessage]] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(
            generations=[ChatGeneration(message=self.script[len(self.seen) - 1])]
        )


def call(name: str, at: int = 1, **arguments: Any) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"name": name, "args": arguments, "id": f"call-{at}"}]
    )


def giving(result: Any, artifact: Any = None) -> BaseTool:
    """A tool that returns this text."""

    @tool(
        "fetch",
        response_format="content" if artifact is None else "content_and_artifact",
    )
    def fetch() -> Any:
        """Fetch a report."""
        return result if artifact is None else (result, artifact)

    return fetch


def middleware(**options: Any) -> SPScannerToolCompressionMiddleware:
    own = {
        "scorer": WordScorer(),
        "longer_than": 100,
        "max_tokens": 40,
        "k": 1,
    } | options
    return SPScannerToolCompressionMiddleware(**own)


def run(
    result: Any, asked: Any = QUESTION, artifact: Any = None, **options: Any
) -> dict[str, Any]:
    """The state of an agent that has called the tool once."""
    model = Scripted(script=[call("fetch"), AIMessage("Done.")])
    agent = create_agent(
        model, [giving(result, artifact)], middleware=[middleware(**options)]
    )
    return dict(agent.invoke({"messages": [HumanMessage(asked)]}))


def result_of(state: dict[str, Any]) -> ToolMessage:
    (message,) = (one for one in state["messages"] if isinstance(one, ToolMessage))
    return message


def test_a_long_result_is_cut_to_its_sentences_with_places_and_a_handle() -> None:
    message = result_of(run(REPORT))
    head, *lines = message.text.splitlines()
    assert lines == [f"[{START}-{START + len(SIGNED)}] {SIGNED}"]
    assert f"{len(REPORT)} characters" in head
    assert message.tool_call_id == "call-1"
    assert "spscanner_results" not in run(REPORT)  # the agent's own


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
async def test_the_rest_is_read_by_its_handle_from_a_checkpoint(how: str) -> None:
    saver, thread = InMemorySaver(), {"configurable": {"thread_id": "1"}}

    async def ask(question: str, *script: AIMessage) -> ToolMessage:
        """The last tool result in a new agent that has only the checkpoints."""
        model = Scripted(script=[*script, AIMessage("So.")])
        agent = create_agent(
            model, [giving(REPORT)], middleware=[middleware()], checkpointer=saver
        )
        asked: Any = {"messages": [HumanMessage(question)]}
        state = (
            agent.invoke(asked, thread)
            if how == "invoke"
            else await agent.ainvoke(asked, thread)
        )
        found = state["messages"][-2]
        assert isinstance(found, ToolMessage)
        return found

    first = await ask(QUESTION, call("fetch"))
    assert SIGNED in first.text
    handle = first.text.split('"')[1]
    rest = await ask(
        "And then?", call("read_tool_result", 2, handle=handle, start=START)
    )
    assert (
        rest.text
        == f"[{START}-{len(REPORT)} of {len(REPORT)} characters]\n> {REPORT[START:]}"
    )
    unknown = await ask("What?", call("read_tool_result", 3, handle="none"))
    assert unknown.status == "error"
    assert f"expected one of {handle}" in unknown.text


def test_two_results_of_one_turn_are_kept_side_by_side() -> None:
    both = AIMessage(
        "", tool_calls=call("fetch").tool_calls + call("other", 2).tool_calls
    )
    other = giving(REPORT[::-1] + ". " + REPORT)
    other.name = "other"
    saver, thread = InMemorySaver(), {"configurable": {"thread_id": "1"}}
    model = Scripted(script=[both, AIMessage("Done.")])
    agent = create_agent(
        model, [giving(REPORT), other], middleware=[middleware()], checkpointer=saver
    )
    agent.invoke({"messages": [HumanMessage(QUESTION)]}, thread)
    assert sorted(
        agent.get_state(thread).values["spscanner_results"].values()
    ) == sorted([REPORT, REPORT[::-1] + ". " + REPORT])


@pytest.mark.parametrize(
    "data",
    [
        {
            "title": "Treaty",
            "body": REPORT,
            "pages": [1.50, 2],
            'a "quoted" name': True,
        },
        [
            {"url": "a", "text": FILLER * 20},
            {"url": "b", "text": f'"{REPORT}"\n\u00df'},
        ],
        {FILLER * 20: {"inner": [REPORT, None]}},
    ],
)
def test_json_stays_json_and_only_its_long_strings_are_cut(data: Any) -> None:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(own) for key, own in value.items()}
        if isinstance(value, list):
            return [without(own) for own in value]
        return (
            "long"
            if (isinstance(value, str) and len(value) > 400)
            or str(value).startswith("[Sent")
            else value
        )

    cut = result_of(run(json.dumps(data))).text
    assert len(cut) < len(json.dumps(data)) - 1000
    assert without(json.loads(cut)) == without(data)
    assert SIGNED in cut
    assert '"pages": [1.5, 2]' in cut or "pages" not in cut


def test_text_blocks_are_cut_and_other_blocks_stay() -> None:
    note = {"type": "text", "text": "Two pages."}
    content = result_of(
        run([note, IMAGE, {"type": "text", "text": REPORT, "extras": {"of": "a"}}])
    ).content
    assert content[1] == IMAGE
    assert content[2]["extras"] == {"of": "a"}
    assert content[2]["text"].endswith(SIGNED)
    assert content[0] == note


@pytest.mark.parametrize(
    ("result", "options"),
    [
        ("Short.", {}),
        (REPORT, {"longer_than": 10_000}),
        (REPORT, {"tools": ["other"]}),
        (REPORT, {"question": lambda state: " "}),
        ([IMAGE], {}),
        (json.dumps({"numbers": list(range(2000))}), {}),
        (" \n" * 2000, {}),
        ([{"type": "text", "text": ""}, IMAGE], {}),
        ("word" * 200, {}),  # a single sentence, which cutting would not shorten
    ],
)
def test_what_is_short_or_no_text_is_passed_on(
    result: Any, options: dict[str, Any]
) -> None:
    assert result_of(run(result, **options)).content == result


def test_an_artifact_stays_with_its_message() -> None:
    message = result_of(run(REPORT, artifact={"rows": 3}))
    assert message.artifact == {"rows": 3}
    assert len(message.text) < 200


@pytest.mark.parametrize(
    "question",
    [QUESTION, [{"type": "text", "text": QUESTION}], "Read this. " * 1000 + QUESTION],
)
def test_the_question_is_the_last_human_message(question: Any) -> None:
    asked: list[str] = []

    class Noting(WordScorer):
        def score_units(self, query: str, text: str, units: Any) -> Any:
            asked.append(query)
            return super().score_units(query, text, units)

    assert SIGNED in result_of(run(REPORT, question, scorer=Noting())).text
    assert asked[0].endswith(QUESTION)
    assert len(asked[0]) <= 2000


def test_errors_and_commands_of_tools_are_passed_on() -> None:
    @tool
    def commanding() -> Command[Any]:
        """Returns a command."""
        return Command(
            update={"messages": [ToolMessage(REPORT, tool_call_id="call-1")]}
        )

    model = Scripted(script=[call("commanding"), AIMessage("Done.")])
    agent = create_agent(model, [commanding], middleware=[middleware()])
    assert (
        result_of(agent.invoke({"messages": [HumanMessage(QUESTION)]})).content
        == REPORT
    )
    own = middleware()
    failed = ToolMessage(REPORT, tool_call_id="call-1", status="error")
    request: Any = type("Request", (), {"tool_call": {"name": "fetch"}, "state": {}})()
    assert own.wrap_tool_call(request, lambda _: failed) is failed


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"longer_than": -1}, "longer_than: got -1"),
        ({"longer_than": 1.5}, "longer_than: got 1.5"),
        ({"tools": "fetch"}, "tools: got a string"),
        ({"max_tokens": 0}, "max_tokens: got 0"),
        ({"documnts": []}, "documnts"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        middleware(**options)
