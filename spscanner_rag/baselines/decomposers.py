"""Decompose passages into propositions with a sequence-to-sequence checkpoint."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import torch

from spscanner_rag.baselines.base import load
from spscanner_rag.checkpoint.hub import HubOptions, check_hub_options
from spscanner_rag.scan.devices import choose
from spscanner_rag.text.extras import needed
from spscanner_rag.text.units import readable


class Source(NamedTuple):
    """A passage, and the title of its text, which may be empty."""

    title: str
    content: str


SEQ2SEQ_INPUT = "Title: {title}. Section: . Content: {content}"
"""The input of the checkpoint of "Dense X Retrieval", without the title of a section."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LENIENT = json.JSONDecoder(strict=False)  # allows line breaks inside strings


def read_reply(reply: str) -> tuple[tuple[str, ...], bool]:
    """Propositions of a reply, without repetitions, and whether it was a JSON list of strings.

    In any other reply, such as one that ends early, complete strings after the first bracket count.
    """
    start = reply.find("[")
    try:
        value = _LENIENT.raw_decode(reply, start)[0] if start >= 0 else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list):
        strings = [entry for entry in value if isinstance(entry, str)]
        return _tidy(strings), len(strings) == len(value)
    quoted = _STRING.findall(reply, start) if start >= 0 else []
    return _tidy([*_decoded(quoted)]), False


def _decoded(quoted: list[str]) -> Iterator[str]:
    for string in quoted:
        try:
            yield _LENIENT.decode(string)
        except ValueError:  # an escape that JSON does not know
            yield string[1:-1]


def _tidy(strings: list[str]) -> tuple[str, ...]:
    """Each string on one line, without empty and repeated ones."""
    lines = (" ".join(string.split()) for string in strings)
    return tuple(dict.fromkeys(line for line in lines if any(map(str.isalnum, line))))


class Seq2Seq:
    """A checkpoint like "chentong00/propositionizer-wiki-flan-t5-large"; its own code is never run.

    ``ImportError`` without transformers, ``ValueError`` if there is no such model.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        batch_size: int = 8,
        max_new_tokens: int = 512,
        **hub: Unpack[HubOptions],
    ) -> None:
        check_hub_options(hub)
        library = needed("transformers", "a proposition model", "baselines")
        choice = choose(device, dtype)
        self.batch_size, self.max_new_tokens, self.device = batch_size, max_new_tokens, choice.device

        def loaded(kind: Any, **options: Any) -> Any:  # noqa: ANN401 - untyped library
            options |= {"trust_remote_code": False, **hub}
            return load(lambda path: kind.from_pretrained(path, **options), model, hub.get("token"))

        self._tokenizer = loaded(library.AutoTokenizer)
        self._model = loaded(library.AutoModelForSeq2SeqLM, dtype=choice.dtype).to(choice.device).eval()

    def __call__(self, sources: Sequence[Source]) -> Iterator[str]:
        """The reply for each passage, in the order given."""
        for start in range(0, len(sources), self.batch_size):
            yield from self._batch(sources[start : start + self.batch_size])

    @torch.inference_mode()
    def _batch(self, sources: Sequence[Source]) -> list[str]:
        texts = [readable(SEQ2SEQ_INPUT.format(**source._asdict())) for source in sources]
        inputs = self._tokenizer(texts, padding=True, return_tensors="pt", verbose=False).to(self.device)
        outputs = self._model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            num_beams=1,
        )
        replies: list[str] = self._tokenizer.batch_decode(outputs, skip_special_tokens=True)
        return replies
