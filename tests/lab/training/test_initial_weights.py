"""A token embedding that starts from word vectors, and layers that start so that a token recalls those like it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spscanner_rag.lab.training.initial_weights import DECAYS, SCALE, STEPS, start_embedding, start_recall
from spscanner_rag.lab.training.start import train_tokenizer
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from tests.lexical.tables import table_of

WORDS = ("ship", "boat", "mast", "zebra")


def test_tokens_that_are_words_start_from_them_and_others_stay() -> None:
    tokenizer = train_tokenizer(["a ship, a boat; Ship mast ships " * 20], 300)
    config = Mamba2Config(d_model=512, n_layer=1, vocab_size=tokenizer.get_vocab_size(), d_state=8, headdim=8)
    torch.manual_seed(0)
    model = ScannerModel(config)
    before = model.backbone.embedding.weight.detach().clone()
    random = np.random.default_rng(0)
    vectors = random.normal(size=(4, 96)).astype(np.float32)
    vectors[1] = vectors[0] + 0.3 * vectors[1]  # a boat is like a ship
    table = table_of(WORDS, vectors)

    replaced = start_embedding(model, tokenizer, table, seed=0)

    words = [tokenizer.decode([n]).strip().lower() for n in range(tokenizer.get_vocab_size())]
    known = [number for number, word in enumerate(words) if word in WORDS]
    assert replaced == len(known) >= 3
    after = model.backbone.embedding.weight.detach()
    same = (after == before).all(dim=1)[: len(words)]
    assert (~same).nonzero()[:, 0].tolist() == known
    assert abs(after[known].std().item() / SCALE - 1) < 0.1
    ship, boat, mast = (after[words.index(word)] for word in ("ship", "boat", "mast"))
    near, far = (torch.cosine_similarity(ship, other, dim=0).item() for other in (boat, mast))
    cosines = table.of_rows(np.arange(3)) @ table.of_rows(np.arange(1))[0]
    assert abs(near - cosines[1]) < 0.15
    assert abs(far - cosines[2]) < 0.15
    assert after.requires_grad is False
    assert model.backbone.embedding.weight.requires_grad
    start_embedding(model, tokenizer, table, seed=0)
    assert torch.equal(model.backbone.embedding.weight.detach(), after), "the same every time"


SHAPE = Mamba2Config(d_model=64, n_layer=2, vocab_size=50, d_state=32, headdim=16)
SHAPES = [
    SHAPE,
    replace(SHAPE, ngroups=2, d_state=48),  # more rows of B than columns
    replace(SHAPE, D_has_hdim=True, conv_bias=False, rmsnorm=False),
]


@pytest.mark.parametrize("config", SHAPES)
def test_a_token_is_looked_up_by_what_it_was_written_with(config: Mamba2Config) -> None:
    model = ScannerModel(config)
    start_recall(model, seed=0)
    state = config.ngroups * config.d_state
    for layer in model.backbone.layers:
        mixer = layer.mixer
        rows = mixer.in_proj.weight.split([config.d_inner, config.d_inner, state, state, config.nheads])
        gate, x, B, C, _ = rows
        assert torch.equal(gate, x)
        assert torch.equal(B, C)
        own = B @ B.T if len(B) <= B.shape[1] else B.T @ B * B.shape[1] / len(B)
        torch.testing.assert_close(own, torch.eye(len(own)), rtol=0, atol=1e-4)
        taps = mixer.conv1d.weight
        assert (taps[..., -1] - 1).abs().max() < 0.1 > taps[..., :-1].abs().max()
        assert mixer.conv1d.bias is None or not mixer.conv1d.bias.any()
        assert not mixer.D.any()


@pytest.mark.parametrize("config", SHAPES)
def test_the_seed_decides_and_steps_and_decays_are_spread(config: Mamba2Config) -> None:
    def started(seed: int) -> ScannerModel:
        torch.manual_seed(0)
        model = ScannerModel(config)
        start_recall(model, seed)
        return model

    model = started(1)
    for layer in model.backbone.layers:
        steps, decays = F.softplus(layer.mixer.dt_bias), layer.mixer.A_log.exp()
        torch.testing.assert_close(steps[[0, -1]], torch.tensor(STEPS))
        torch.testing.assert_close(decays[[0, -1]], torch.tensor(DECAYS))
    assert all(parameter.requires_grad for parameter in model.parameters())
    first = model.state_dict()
    for seed, same in ((1, True), (2, False)):
        found = started(seed).state_dict()
        assert all(torch.equal(found[name], value) for name, value in first.items()) is same
