"""Models by name, and models of both frameworks held to a schema."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata, MockLLM

from spscanner_rag.lab.llm.language_models import LanguageModel, reply_text
from spscanner_rag.lab.llm.metered import MeteredModel
from spscanner_rag.lab.llm.named import named_model
from spscanner_rag.lab.llm.structured import structured_of
from spscanner_rag.lab.llm.usage import Usage

SCHEMA: dict[str, Any] = {
    "title": "label_units",
    "description": "The reply.",
    "type": "object",
    "properties": {
        "relevant": {"type": "string"},
        "indices": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["relevant", "indices"],
}
VALUES = {"relevant": "yes", "indices": [1, 2]}


class ToolChatModel(BaseChatModel):
    """A chat model of LangChain that calls the tool it is given."""

    @property
    def _llm_type(self) -> str:
        return "tools"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        call = {"name": "label_units", "args": VALUES, "id": "1"}
        usage = {"input_tokens": 40, "output_tokens": 9, "total_tokens": 49}
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage("", tool_calls=[call], usage_metadata=usage))]
        )


class JsonLLM(CustomLLM):
    """An LLM of LlamaIndex that replies with JSON."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="json", is_function_calling_model=True)

    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        return CompletionResponse(text=json.dumps(VALUES))

    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
        raise NotImplementedError

    def structured_predict(self, output_cls: Any, prompt: Any, llm_kwargs: Any = None, **options: Any) -> Any:
        return output_cls(**VALUES)


def test_langchain_is_held_to_a_schema_and_counted() -> None:
    structured = structured_of(ToolChatModel())
    assert structured is not None
    paid = MeteredModel(model=LanguageModel("tools", str))
    assert json.loads(paid.ask("Label these.", structured(SCHEMA))) == VALUES
    assert paid.spending.usage == Usage(40, 9)


def test_llama_index_is_held_to_a_schema() -> None:
    structured = structured_of(JsonLLM())
    assert structured is not None
    assert json.loads(reply_text(structured(SCHEMA)("Label these."))) == VALUES


@pytest.mark.parametrize("model", [FakeListChatModel(responses=["a"]), MockLLM(), str])
def test_models_without_schemas(model: object) -> None:
    assert structured_of(model) is None


def test_a_model_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from langchain_core.language_models import FakeListChatModel\n"
        "def make():\n    return FakeListChatModel(responses=['made'], model_name='fake')\n"
        "def ask(prompt):\n    return prompt.upper()\n"
    )
    assert named_model(f"{path}:ask")[1]("a") == "A"
    path.write_text(path.read_text().replace(", model_name='fake'", ""))
    with pytest.raises(ValueError, match="has no name to store its replies under"):
        named_model(f"{path}:make")
    with pytest.raises(ValueError, match="has no 'absent'"):
        named_model(f"{path}:absent")


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("anthropic:claude", "llama-index-llms-anthropic` or `pip install langchain-anthropic"),
        ("langchain:mistral:small", "pip install langchain-mistralai"),
        ("llama-index:google:flash", "pip install llama-index-llms-google-genai"),
    ],
)
def test_a_missing_package_is_named(name: str, package: str) -> None:
    with pytest.raises(ImportError, match=package):
        named_model(name)


@pytest.mark.parametrize("name", ["gpt", "openai:", "langchain:openai", "nobody:model", ""])
def test_names_without_a_form(name: str) -> None:
    with pytest.raises(ValueError, match=r"expected PROVIDER:MODEL"):
        named_model(name)
