"""Models of both frameworks and plain functions, asked in the same way."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import Field

from spscanner_lab.llm.language_models import language_model_of, named_model
from spscanner_lab.llm.replies import reply_text


class Shouting(CustomLLM):
    """A LlamaIndex LLM that repeats the prompt in capitals."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="shouting-1")

    @llm_completion_callback()
    def complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return CompletionResponse(text=prompt.upper())

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> Any:
        raise NotImplementedError


class ShoutingChat(FakeListChatModel):
    """A LangChain chat model that repeats the prompt in capitals, after reasoning."""

    responses: list[str] = Field(default_factory=list)
    model_name: str = "shouting-chat"

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        blocks: list[str | dict[str, Any]] = [
            {"type": "reasoning", "reasoning": "aha"},
            {"type": "text", "text": messages[-1].content.upper()},
        ]
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(content=blocks))]
        )


def shout(prompt: str) -> str:
    return prompt.upper()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (Shouting(), "shouting-1"),
        (ShoutingChat(), "shouting-chat"),
        (shout, "shout"),
        (SimpleNamespace(model_id="a-2", invoke=shout), "a-2"),
    ],
)
def test_every_kind(model: object, name: str) -> None:
    adapted = language_model_of(model)
    assert adapted.name == name
    reply = reply_text(adapted.ask("Why? é"))
    assert reply == "WHY? É"
    assert (
        type(reply) is str
    )  # not a framework's subclass, which JSON accepts but pickle does not


def test_names_are_given_and_an_adapted_model_is_taken_as_it_is() -> None:
    for model, said in ((MockLLM(), "hi"), (RunnableLambda(shout), "HI")):
        adapted = language_model_of(model, name="given")
        assert reply_text(adapted.ask("hi")) == said
        assert language_model_of(adapted) is adapted


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        # two of them would share their stored replies
        (
            MockLLM(),
            ValueError,
            "a MockLLM has no name to store its replies under; expected one",
        ),
        (lambda prompt: prompt, ValueError, "has no name"),
        (3, TypeError, "an object of type int; expected a LlamaIndex LLM"),
        ("gpt-4o", TypeError, "an object of type str"),
        (Shouting, TypeError, "the class Shouting"),
    ],
)
def test_what_cannot_be_asked(
    model: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        language_model_of(model)


def test_no_framework_is_imported() -> None:
    code = (
        "import sys, spscanner_lab.answers.answering\nfrom spscanner_lab.llm.asking"
        " import Asker\nfrom spscanner_lab.llm.language_models import"
        " language_model_of\nAsker().ask(language_model_of(str.upper),"
        " 'Who?')\nprint([name for name in sys.modules if"
        " name.startswith(('llama_index', 'langchain', 'openai'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_model_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from langchain_core.language_models import FakeListChatModel\ndef make():\n   "
        " return FakeListChatModel(responses=['made'], model_name='fake')\ndef"
        " ask(prompt):\n    return prompt.upper()\n"
    )
    assert named_model(f"{path}:ask").ask("a") == "A"
    path.write_text(path.read_text().replace(", model_name='fake'", ""))
    with pytest.raises(ValueError, match="has no name to store its replies under"):
        named_model(f"{path}:make")
    with pytest.raises(ValueError, match="has no 'absent'"):
        named_model(f"{path}:absent")


def test_a_package_without_one_that_it_needs_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "langchain_mistralai.py").write_text("import absent_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'absent_package'"):
        named_model("mistral:small")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "anthropic:claude",
            ImportError,
            "llama-index-llms-anthropic` or `pip install langchain-anthropic",
        ),
        ("langchain:mistral:small", ImportError, "pip install langchain-mistralai"),
        (
            "llama-index:google:flash",
            ImportError,
            "pip install llama-index-llms-google-genai",
        ),
        *(
            (name, ValueError, "expected PROVIDER:MODEL")
            for name in ("gpt", "openai:", "langchain:openai", "")
        ),
        ("nobody:model", ValueError, "expected PROVIDER:MODEL"),
    ],
)
def test_models_that_are_not_there(
    name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        named_model(name)
