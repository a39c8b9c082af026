from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.checkpoint import load_model
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.data.stretches import Example
from spscanner_rag.lab.training.passes import Pass, passes
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.loss import EvidenceObjective
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS
from spscanner_rag.scan.prepare import Reading


@given(
    lengths=st.lists(st.integers(1, 3000), min_size=1, max_size=20),
    most=st.integers(64, 8192),
    streams=st.booleans(),
)
def test_every_sequence_is_read_once_and_a_pass_is_within_its_limit(
    lengths: list[int], most: int, streams: bool
) -> None:
    found = passes(lengths, most, streams)
    assert sorted(i for one in found for i in one.members) == list(range(len(lengths)))
    for one in found:
        assert one.members
        assert one.is_stream == streams
        if streams:
            assert len(one.members) == 1 or sum(lengths[i] for i in one.members) <= most
            continue
        rows = len(one.members)
        assert max(lengths[i] for i in one.members) <= one.width
        assert one.width % CHUNK_TOKENS == 0
        assert rows == 1 or rows * one.width <= most + rows * (CHUNK_TOKENS - 1)


def gradients(
    checkpoint: Path, objective: EvidenceObjective, examples: Sequence[Example], reads: Sequence[Pass]
) -> dict[str, torch.Tensor]:
    model = load_model(checkpoint)
    model.requires_grad_(True)
    for one in reads:
        objective.loss(model, examples, one).backward()  # type: ignore[no-untyped-call]
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_padding_and_streams_leave_the_gradients(
    tiny_checkpoint: Path, documents: list[Document], reading: Reading, grouped: bool, stream: bool
) -> None:
    recipe = Recipe(sequences_per_step=3, dtype="float32", ranking_weight=0.5)
    source = ExampleSource(DocumentStore(documents), reading, recipe)
    objective = EvidenceObjective(source, recipe, load_model(tiny_checkpoint).config.d_model)
    first, *others = (objective.example(number, 64) for number in range(4))
    examples = [replace(first, others=(others.pop(),)) if grouped else first, *others]
    longest = max(len(s.sequence.input_ids) for example in examples for s in example.stretches)
    width = -(-longest // CHUNK_TOKENS) * CHUNK_TOKENS
    numbers = range(len(examples))
    expected = gradients(tiny_checkpoint, objective, examples, [Pass([i], width) for i in numbers])
    padded = [Pass([0, 1], width + CHUNK_TOKENS), Pass(numbers[2:], width)]
    found = gradients(tiny_checkpoint, objective, examples, [Pass(numbers)] if stream else padded)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-5, msg=name)
