import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.baselines.decomposers import SEQ2SEQ_INPUT, Seq2Seq, Source, read_reply
from spscanner_rag.baselines.propositions import Propositions
from spscanner_rag.lab.llm.language_models import language_model_of

TEXT = "Anna Brook kept the lighthouse. She signed the treaty in 1911. It rained. The bell rang, 東京の人."
SENTENCES = ["Anna Brook kept the lighthouse.", "She signed the treaty in 1911.", "It rained."]
STATEMENTS = [
    "Anna Brook kept the lighthouse.",
    "Anna Brook signed the treaty.",
    "The treaty was signed in 1911.",
    "Nobody knows.",
]


def passage_in(prompt: str) -> str:
    match = re.search(r"<<<PASSAGE\n(.*)\nPASSAGE>>>", prompt, re.DOTALL)
    assert match is not None
    return match[1]


class FakeModel:
    """A function from prompt to reply that keeps the prompts."""

    def __init__(self, reply: Callable[[str], str] = lambda _: json.dumps(STATEMENTS)) -> None:
        self.reply = reply
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.reply(prompt)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def shared_words(query: str, texts: list[str]) -> NDArray[np.float32]:
    return np.array([len(words(query) & words(text)) - 2 for text in texts], np.float32)


class LlamaIndexLike(FakeModel):
    class metadata:  # noqa: N801 - as LlamaIndex has it
        model_name = "fake-1"

    __call__ = None  # type: ignore[assignment]

    def complete(self, prompt: str) -> Any:
        return type("CompletionResponse", (), {"text": FakeModel.__call__(self, prompt)})()


class LangChainLike(FakeModel):
    model_name = "fake-2"

    def invoke(self, prompt: str) -> Any:
        return FakeModel.__call__(self, prompt)


class ChatLike(LangChainLike):
    def invoke(self, prompt: str) -> Any:
        reply = FakeModel.__call__(self, prompt)
        blocks = [{"type": "reasoning", "reasoning": "[]"}, {"type": "text", "text": reply[:9]}, reply[9:]]
        return type("AIMessage", (), {"content": blocks})()


@pytest.mark.parametrize(
    ("model", "name"), [(LlamaIndexLike(), "fake-1"), (LangChainLike(), "fake-2"), (ChatLike(), "fake-2")]
)
def test_any_kind_of_language_model(model: FakeModel, name: str) -> None:
    model.prompts.clear()
    baseline = Propositions(language_model_of(model), shared_words)
    assert [found.text for found in baseline.propositions(TEXT)] == STATEMENTS
    assert baseline.name == f"propositions:{name}"
    assert [passage_in(prompt) for prompt in model.prompts] == [TEXT]


def test_the_frameworks_own_fake_models() -> None:
    chat_models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    llms = pytest.importorskip("llama_index.core.llms")
    langchain = language_model_of(chat_models.FakeListChatModel(responses=[json.dumps(STATEMENTS)]), "chat")
    assert len(Propositions(langchain, shared_words).propositions(TEXT)) == 4
    mock = Propositions(language_model_of(llms.MockLLM(max_tokens=3), "mock"), shared_words)
    assert mock.name == "propositions:mock"
    assert mock.propositions(TEXT) == ()  # of "text text text"
    assert (mock.passages_decomposed, mock.replies_lost) == (1, 1)


def test_a_model_without_a_name_has_that_of_its_class() -> None:
    assert Propositions(FakeModel(), shared_words).name == "propositions:FakeModel"
    assert Propositions(shared_words, shared_words).name == "propositions:shared_words"
    assert Propositions(lambda _: "[]", shared_words).name == "propositions:<lambda>"


@pytest.mark.parametrize(
    ("reply", "propositions", "is_list"),
    [
        ('["a b", "c"]', ["a b", "c"], True),
        ("[]", [], True),
        ('Here they are:\n```json\n["a",\n "b"]\n```\nDone.', ["a", "b"], True),
        ('{"propositions": ["a", "b"]}', ["a", "b"], True),
        ('["a", "a", " b\n c ", ""]', ["a", "b c"], True),
        ('["a", "b \\"quoted\\"", "cut o', ["a", 'b "quoted"'], False),
        ('["a", "b",]', ["a", "b"], False),
        ('["a" "b"]', ["a", "b"], False),
        ('["a", 3, null, "b"]', ["a", "b"], False),
        (r'["a \_ b", "\u00e9"', [r"a \_ b", "é"], False),
        ("Facts:\n- one is\n 2) two is\n* three", ["one is", "two is", "three"], False),
        ("I cannot do that.", [], False),
        ("", [], False),
        ("[" * 100_000, [], False),
        ('["...", "-"]', [], True),
    ],
)
def test_replies(reply: str, propositions: list[str], is_list: bool) -> None:
    assert read_reply(reply) == (tuple(propositions), is_list)


@settings(max_examples=50)
@given(st.lists(st.text(min_size=1)), st.integers(0, 400))
def test_whatever_is_cut_off_keeps_the_complete_strings(statements: list[str], cut: int) -> None:
    known, is_list = read_reply(json.dumps(statements))
    assert is_list
    part, _ = read_reply(json.dumps(statements)[:cut])
    assert list(part) == list(known)[: len(part)]


@pytest.fixture(scope="module")
def t5(tiny_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random T5 of one small layer, in the layout of the published checkpoint."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models") / "t5"
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_str())
    tokenizer.add_special_tokens(["<pad>", "</s>"])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", model_max_length=64
    ).save_pretrained(folder)
    config = transformers.T5Config(
        vocab_size=tokenizer.get_vocab_size(),
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        pad_token_id=tokenizer.token_to_id("<pad>"),
        eos_token_id=tokenizer.token_to_id("</s>"),
        decoder_start_token_id=tokenizer.token_to_id("<pad>"),
        initializer_factor=20.0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def test_a_checkpoint_gives_what_transformers_generates(t5: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sources = [
        Source("", "", SENTENCES[0]),
        Source("Keepers", "Anna", TEXT * 2),
        Source("", "", "It rained. \ud800"),
    ]
    replies = list(Seq2Seq(t5, device="cpu", batch_size=2, max_new_tokens=12)(sources))
    tokenizer = transformers.AutoTokenizer.from_pretrained(t5)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(t5).eval()
    assert "Title: Keepers. Section: Anna. Content: Anna" in SEQ2SEQ_INPUT.format(**sources[1]._asdict())
    for source, reply in zip(sources, replies, strict=True):
        read = SEQ2SEQ_INPUT.format(**source._asdict()).replace("\ud800", "\ufffd")
        ids = tokenizer(read, return_tensors="pt").input_ids
        with torch.no_grad():
            output = model.generate(ids, max_new_tokens=12)
        assert reply == tokenizer.decode(output[0], skip_special_tokens=True)
    assert len(set(replies)) > 1


def test_a_checkpoint_as_decomposer(
    t5: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    baseline = Propositions(t5, shared_words, device="cpu", batch_size=2)
    assert capfd.readouterr() == ("", "")
    assert baseline.name == f"propositions:{t5}"
    baseline._replies.max_new_tokens = 4  # type: ignore[attr-defined]
    units = baseline.segment(TEXT)
    assert np.isfinite(baseline.score_units("who", TEXT, units)).all()
    assert baseline.passages_decomposed == 1
    assert baseline.replies_broken == 1, "random weights write no JSON"
    decode = baseline._replies._tokenizer.batch_decode  # type: ignore[attr-defined]
    other = Propositions(t5, shared_words, device="cpu")
    other._replies.max_new_tokens = 4  # type: ignore[attr-defined]
    monkeypatch.setattr(
        other._replies._tokenizer,  # type: ignore[attr-defined]
        "batch_decode",
        lambda outputs, **options: [json.dumps(STATEMENTS[:3]) for _ in decode(outputs, **options)],
    )
    assert int(np.argmax(other.score_units("who signed the treaty", TEXT, units))) == 1
