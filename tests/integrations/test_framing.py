"""The templates of each framework with framed passages: none poses as our words."""

import re
from typing import Any

import pytest

from spscanner_rag.retrieval import framed, quoted
from tests.text.test_framing import CONTROLS, HEADS, INVISIBLE, LINK, MARKUP, TAG

TEXTS = [*HEADS, *MARKUP, *CONTROLS[:-1]]  # Haystack takes no lone surrogate
QUESTION = "Who signed the treaty?"


def by_langchain(texts: list[str]) -> str:
    """The prompt of the page on LangChain."""
    pytest.importorskip("langchain_core", reason="the extra langchain is missing")
    from langchain_core.documents import Document
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda

    def context(found: list[Document]) -> str:
        return "\n".join(
            framed(f"[{number}] ", one.page_content) for number, one in enumerate(found)
        )

    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
    chain: Any = {
        "context": RunnableLambda(context),
        "question": RunnableLambda(lambda found: QUESTION),
    } | prompt
    documents = [Document(page_content=text) for text in texts]
    return str(chain.invoke(documents).to_messages()[0].content)


def by_llama_index(texts: list[str]) -> str:
    """The prompt of the page on LlamaIndex."""
    pytest.importorskip("llama_index.core", reason="the extra llama-index is missing")
    from llama_index.core import PromptTemplate
    from llama_index.core.schema import MetadataMode, TextNode

    nodes = [TextNode(text=text) for text in texts]
    template = PromptTemplate("{context_str}\n\nQuestion: {query_str}")
    context = "\n".join(
        framed(f"[{number}] ", node.get_content(MetadataMode.LLM))
        for number, node in enumerate(nodes)
    )
    return template.format(context_str=context, query_str=QUESTION)


def by_haystack(texts: list[str]) -> str:
    """The prompt of the page on Haystack."""
    pytest.importorskip("haystack", reason="the extra haystack is missing")
    from haystack import Document, Pipeline
    from haystack.components.builders import PromptBuilder
    from haystack.components.converters import OutputAdapter

    def context(documents: list[Document]) -> str:
        return "\n".join(
            framed(f"[{number}] ", one.content or "")
            for number, one in enumerate(documents)
        )

    pipeline = Pipeline()
    pipeline.add_component(
        "framed",
        OutputAdapter(
            "{{ documents | context }}", str, custom_filters={"context": context}
        ),
    )
    pipeline.add_component(
        "prompt",
        PromptBuilder(
            "{{ context }}\n\nQuestion: {{ question }}", required_variables="*"
        ),
    )
    pipeline.connect("framed", "prompt.context")
    documents = [Document(content=text) for text in texts]
    given = {"framed": {"documents": documents}, "prompt": {"question": QUESTION}}
    return str(pipeline.run(given)["prompt"]["prompt"])


@pytest.mark.parametrize("made_by", [by_langchain, by_llama_index, by_haystack])
def test_no_passage_of_a_prompt_poses_as_our_words(made_by: Any) -> None:
    prompt = made_by(TEXTS)
    context, _, question = prompt.rpartition("\n\n")
    assert question == f"Question: {QUESTION}"
    heads = re.findall(r"^\[(\d+)\] ", context, re.MULTILINE)
    assert heads == [str(number) for number in range(len(TEXTS))]
    for line in context.split("\n"):
        assert re.match(r"\[\d+\] (?!\s*\[)|> ", line)
    assert not LINK.search(context)
    assert not TAG.search(context)
    assert not INVISIBLE.search(context)


@pytest.mark.parametrize("made_by", [by_langchain, by_llama_index, by_haystack])
def test_ordinary_passages_stay_as_they_are(made_by: Any) -> None:
    prompt = made_by(["Anne signed it.", "It rained [2] on 3 < 4 ships."])
    assert prompt.startswith("[0] Anne signed it.\n[1] It rained [2] on 3 < 4 ships.")


def test_a_whole_result_of_a_tool_is_quoted() -> None:
    assert quoted("a[0] = 1\nb = 2") == "> a[0] = 1\n> b = 2"
