from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._dynamo.utils import counters

from spscanner_rag.checkpoint import load_model
from spscanner_rag.evidence.questions import Document
from spscanner_rag.mamba2.ssd import CHUNK_TOKENS
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.training.data.document_store import DocumentStore
from spscanner_rag.training.data.examples import ExampleSource
from spscanner_rag.training.passes import Pass, compile_layers, passes
from spscanner_rag.training.recipe import Recipe
from spscanner_rag.training.stages.evidence_objective import EvidenceObjective


@given(
    lengths=st.lists(st.integers(1, 3000), min_size=1, max_size=20),
    length=st.integers(64, 1500),
    most=st.integers(64, 8192),
    compiled=st.booleans(),
)
def test_every_sequence_is_read_once_in_a_shape_that_holds_it(
    lengths: list[int], length: int, most: int, compiled: bool
) -> None:
    found = passes(lengths, length, most, compiled)
    assert sorted(i for one in found for i in one.members) == list(range(len(lengths)))
    for one in found:
        assert 0 < len(one.members) <= one.rows
        assert max(lengths[i] for i in one.members) <= one.width
        assert one.width % CHUNK_TOKENS == 0
        padding = one.rows * (CHUNK_TOKENS - 1)
        assert one.rows == 1 or one.rows * one.width <= most + padding


def test_compiled_passes_of_a_length_have_one_shape() -> None:
    found = passes([1000, 200, 1024, 1100, 900, 30, 1001], 1000, 4096, compiled=True)
    assert {(one.rows, one.width) for one in found if one.compiled} == {(4, 1024)}
    assert [(list(one.members), one.width) for one in found if not one.compiled] == [([3], 1152)]


def gradients(
    checkpoint: Path, objective: EvidenceObjective, shapes: Sequence[Pass]
) -> dict[str, torch.Tensor]:
    model = load_model(checkpoint)
    model.requires_grad_(True)
    if any(one.compiled for one in shapes):
        compile_layers(model)
    examples = [objective.example(number, 64) for number in range(3)]
    for one in shapes:
        objective.loss(model, examples, one).backward()  # type: ignore[no-untyped-call]
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf"
)  # torch hides it itself
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_padding_rows_and_compilation_leave_the_gradients(
    tiny_checkpoint: Path, documents: list[Document], reading: Reading, compiled: bool
) -> None:
    recipe = Recipe(sequences_per_step=3, dtype="float32", ranking_weight=0.5)
    source = ExampleSource(DocumentStore(documents), reading, recipe)
    objective = EvidenceObjective(source, recipe, load_model(tiny_checkpoint).config.d_model)
    lengths = [objective.tokens(objective.example(number, 64)) for number in range(3)]
    width = -(-max(lengths) // CHUNK_TOKENS) * CHUNK_TOKENS
    expected = gradients(tiny_checkpoint, objective, [Pass([i], 1, width) for i in range(3)])
    padded = [Pass([0, 1], 2, width, compiled), Pass([2], 2, width, compiled)]
    before = counters["stats"]["unique_graphs"]
    found = gradients(tiny_checkpoint, objective, padded)
    assert (counters["stats"]["unique_graphs"] > before) == compiled
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-5, msg=name)
