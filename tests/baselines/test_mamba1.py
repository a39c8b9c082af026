import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from spscanner_rag.baselines.mamba1 import Mamba1Config
from spscanner_rag.baselines.mamba_reranker import MambaReranker
from spscanner_rag.baselines.pair_reader import PairReader
from spscanner_rag.baselines.reranker_layout import read_config
from spscanner_rag.checkpoint import CheckpointError, load_model
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS, Kernels
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.mamba2.token_sequences import TokenSequence

SHAPES = (
    {},
    {"state_size": 8, "time_step_rank": 3, "conv_kernel": 3},
    {"use_bias": True, "use_conv_bias": False, "expand": 3, "layer_norm_epsilon": 1e-3},
)


def original(shape: dict[str, Any], vocab_size: int = 50) -> Any:
    """A random model of transformers in which every weight has an effect."""
    transformers = pytest.importorskip("transformers")
    config = transformers.MambaConfig(
        hidden_size=32, num_hidden_layers=2, vocab_size=vocab_size, **shape
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.MambaModel(config).eval()
        for parameter in model.parameters():
            parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model


def saved(model: Any, folder: Path, tokenizer: Tokenizer, layout: str) -> Path:
    """A reranker made from a transformers model, in one of the existing layouts."""
    config = model.config.to_dict()
    tensors = {
        f"backbone.{name}": tensor for name, tensor in model.state_dict().items()
    }
    if layout == "mamba_ssm":
        tensors = {
            name.replace(".embeddings.", ".embedding."): tensor
            for name, tensor in tensors.items()
        }
        config = Mamba1Config.from_dict(config).to_dict()
        del config["ssm_cfg"]["layer"]
    tensors["score.weight"] = torch.ones(1, 32)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(tensors, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def own(model: Any) -> ScannerModel:
    """The same weights in our own layers."""
    made = ScannerModel(
        read_config(json.loads(json.dumps(model.config.to_dict())))
    ).eval()
    names = {
        f"backbone.{name}".replace("embeddings", "embedding"): t
        for name, t in model.state_dict().items()
    }
    made.load_state_dict(names, strict=False)
    return made


@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_agrees_with_transformers_whole_and_in_segments(shape: dict[str, Any]) -> None:
    model = original(shape)
    ids = torch.randint(50, (3, 150), generator=torch.Generator().manual_seed(1))
    expected = model(ids).last_hidden_state
    hidden, _ = own(model)(ids)
    torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-5)
    state, read = None, []
    for part in ids.split(37, dim=1):
        hidden, state = own(model)(part, state)
        read.append(hidden)
    torch.testing.assert_close(torch.cat(read, 1), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("packs", [False, True])
@torch.no_grad()
def test_texts_of_different_lengths_read_together_are_read_as_each_alone(
    packs: bool,
) -> None:
    model = original(SHAPES[1])
    mine = own(model)
    if packs:
        mine.use_kernels(numba_kernels())
    assert mine.kernels.packs == packs
    lengths = [70, 1, 33, 65, 64, 2]
    draw = np.random.default_rng(0)
    sequences = [
        TokenSequence(draw.integers(0, 50, n), np.array([n // 2, n - 1]))
        for n in lengths
    ]
    head = mine.binary_head
    assert head is not None
    for segment_tokens in (40, 4096):
        logits = read_logits(mine, sequences, segment_tokens)
        for sequence, found in zip(sequences, logits, strict=True):
            hidden = model(
                torch.from_numpy(sequence.input_ids)[None]
            ).last_hidden_state[0]
            expected = head(hidden[sequence.positions])[:, 0]
            np.testing.assert_allclose(found, expected.numpy(), atol=1e-5, rtol=1e-5)


def numba_kernels() -> Kernels:
    pytest.importorskip("numba")
    from spscanner_lab.training.kernels.gradients import NumbaTrainingKernels

    return NumbaTrainingKernels()


@pytest.mark.parametrize("layout", ["mamba_ssm", "transformers"])
def test_a_reranker_of_mamba_1(
    layout: str, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = original(SHAPES[2], tiny_tokenizer.get_vocab_size())
    reranker = MambaReranker(
        saved(model, tmp_path, tiny_tokenizer, layout), device="cpu", dtype="float32"
    )
    texts = ["He signed the treaty and left.", "It rained.", "The bell rang! " * 30]
    pairs = PairReader(tiny_tokenizer)
    for text, score in zip(
        texts, reranker.score_texts("Who signed?", texts), strict=True
    ):
        ids = torch.from_numpy(pairs.sequence("Who signed?", text).input_ids)[
            None
        ].long()
        with torch.no_grad():
            expected = model(ids).last_hidden_state[0, -1].sum().item()
        assert score == pytest.approx(expected, abs=1e-4)
    with pytest.raises(CheckpointError, match=r"Mamba-1|model_type is 'mamba'"):
        load_model(tmp_path)  # no scanner is a Mamba-1


def test_packed_and_padded_rows_have_the_same_gradients() -> None:
    mine = own(original(SHAPES[1]))
    ids = torch.randint(50, (1, 90), generator=torch.Generator().manual_seed(2))
    index = torch.tensor([[0] * 40 + [1] * 50], dtype=torch.int32)
    found = []
    for kernels in (numba_kernels(), TORCH_KERNELS):
        mine.use_kernels(kernels)
        mine.zero_grad()
        if kernels.packs:
            loss = mine(ids, sequence_index=index)[0].square().sum()
        else:
            loss = sum(
                (mine(part)[0].square().sum() for part in ids.split([40, 50], 1)),
                torch.zeros(()),
            )
        loss.backward()
        found.append([p.grad.clone() for p in mine.parameters() if p.grad is not None])
    for packed, padded in zip(*found, strict=True):
        torch.testing.assert_close(packed, padded, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"ssm_cfg": {"headdim": 8}},
            "ssm_cfg.headdim is not a key of mamba_ssm's Mamba-1",
        ),
        ({"ssm_cfg": {"dt_rank": 0}}, "dt_rank is 0; expected a whole number"),
        (
            {"ssm_cfg": {"layer": "Mamba3"}},
            "ssm_cfg.layer is 'Mamba3': not a supported kind",
        ),
        ({"ssm_cfg": 3}, "ssm_cfg is 3; expected an object"),
        ({"attn_layer_idx": [1]}, "attention layers are not supported"),
        ({"rms_norm": False}, "layer norm is not supported"),
    ],
)
def test_other_layers_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_config({"d_model": 32, "n_layer": 1, "vocab_size": 50, **config})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; expected 'silu'"),
        ({"model_type": "falcon_mamba"}, "model_type is 'falcon_mamba'; expected"),
        ({"num_hidden_layers": 10**9}, "backbone.layers.2.*is missing|missing"),
    ],
)
def test_folders_that_hold_another_model(
    change: dict[str, Any], message: str, tiny_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    saved(
        original({}, tiny_tokenizer.get_vocab_size()),
        tmp_path,
        tiny_tokenizer,
        "transformers",
    )
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        MambaReranker(tmp_path, device="cpu")
