from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.checkpoint import load_model
from spscanner_rag.lab.training.data.examples import DocumentStore
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.evidence import EvidenceObjective, evidence_loss, passes, unit_states
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.scan.prepare import Reading


@settings(max_examples=50)
@given(
    lengths=st.lists(st.integers(1, 3000), min_size=1, max_size=20),
    most=st.integers(64, 8192),
    packs=st.booleans(),
)
def test_every_sequence_is_read_once_and_a_pass_is_within_its_limit(
    lengths: list[int], most: int, packs: bool
) -> None:
    found = passes(lengths, most, packs)
    assert sorted(i for members in found for i in members) == list(range(len(lengths)))
    for members in found:
        own = [lengths[i] for i in members]
        assert len(own) == 1 or (sum(own) if packs else len(own) * max(own)) <= most


def test_padding_leaves_the_gradients(tiny_checkpoint: Path, store: DocumentStore, reading: Reading) -> None:
    recipe = Recipe(sequences_per_step=3, dtype="float32", ranking_weight=0.5)
    objective = EvidenceObjective(store, reading, recipe)
    examples = [objective.example(number, 64) for number in range(4)]

    def gradients(reads: list[list[int]]) -> dict[str, torch.Tensor]:
        model = load_model(tiny_checkpoint).requires_grad_(True)
        for one in reads:
            evidence_loss(model, examples, one, recipe).backward()  # type: ignore[no-untyped-call]
        return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}

    expected, found = gradients([[0], [1], [2], [3]]), gradients([[0, 1], [2, 3]])
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("lengths", [[1], [70], [90, 30]])
@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))],
)
def test_recomputing_keeps_each_blocks_input_alone_and_the_gradients(
    device: str, lengths: list[int], dtype: str
) -> None:
    config = Mamba2Config(d_model=16, n_layer=3, vocab_size=61, d_state=8, headdim=8)
    sequences = [TokenSequence(np.arange(n, dtype=np.int32) % 61, np.arange(n)) for n in lengths]
    kept, found = [], []
    for where, recomputes in (("cpu", False), (device, True)):
        torch.manual_seed(0)
        model = ScannerModel(config).to(where)
        model.backbone.recomputes = recomputes
        saved: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, to=saved: to.append(t.nbytes) or t, lambda t: t
        ):
            states = unit_states(model, sequences, dtype)
        torch.cat([state.float().square() for state in states]).sum().backward()
        kept.append(sum(saved))
        found.append({name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None})
    assert kept[1] < kept[0] / 4
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        close = (
            {"rtol": 1e-3, "atol": 1e-4}
            if dtype == "float32" or device == "cpu"
            else {"rtol": 0.1, "atol": 0.1}
        )
        torch.testing.assert_close(found[1][name], value, **close, msg=name)
