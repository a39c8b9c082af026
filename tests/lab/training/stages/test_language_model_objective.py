import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

from spscanner_rag.lab.training.data.token_cache import TokenCache, open_token_cache
from spscanner_rag.lab.training.loop import Trainer
from spscanner_rag.lab.training.passes import Pass
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lab.training.stages.language_model_objective import (
    LanguageModelObjective,
    held_out_loss,
    summed_loss,
)
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel

ALONE = Pass([0], 64)

RECIPE = Recipe(
    stage="language-model",
    steps=8,
    sequence_tokens=(64, 96),
    sequences_per_step=3,
    learning_rate=2e-2,
    dtype="float32",
    save_every=3,
)


@pytest.fixture(scope="module")
def tokens(
    tmp_path_factory: pytest.TempPathFactory, corpus_file: Path, tiny_tokenizer: Tokenizer
) -> TokenCache:
    return open_token_cache([corpus_file], tiny_tokenizer, tmp_path_factory.mktemp("tokens"))


def model(match: bool = False) -> ScannerModel:
    torch.manual_seed(0)
    config = Mamba2Config(
        d_model=16, n_layer=2, vocab_size=382, d_state=8, headdim=8, pad_vocab_size_multiple=16
    )
    return ScannerModel(config, match_embedding=match, head=False)


def test_the_loss_is_that_of_the_next_token_given_those_before(tokens: TokenCache) -> None:
    language_model = model()
    sequences = [tokens.read(0, 40), tokens.read(50, 120)]
    expected = 0.0
    for sequence in sequences:
        ids = torch.from_numpy(sequence)[None]
        hidden, _ = language_model(ids[:, :-1])
        logits = hidden[0] @ language_model.backbone.embedding.weight[:382].T  # two rows are padding
        expected += F.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
    assert summed_loss(language_model, sequences, "float32", Pass([0, 1], 128)).item() == pytest.approx(
        expected, rel=1e-5
    )


def test_a_model_with_a_lexical_channel_reads_text_that_matches_nothing(tokens: TokenCache) -> None:
    plain, with_match = model(), model(match=True)
    with_match.load_state_dict(plain.state_dict(), strict=False)
    assert with_match.match_embedding is not None
    sequences = [tokens.read(0, 40)]
    expected = summed_loss(plain, sequences, "float32", ALONE).item()
    assert summed_loss(with_match, sequences, "float32", ALONE).item() != pytest.approx(expected, rel=1e-6)
    with torch.no_grad():
        with_match.match_embedding.weight[0] = 0.0  # the other rows stay
    assert summed_loss(with_match, sequences, "float32", ALONE).item() == pytest.approx(expected, rel=1e-6)


def test_a_step_is_the_mean_over_its_tokens_and_is_repeatable(tokens: TokenCache) -> None:
    objective = LanguageModelObjective(tokens, RECIPE)
    batch = [objective.example(number, 64) for number in range(15, 18)]
    assert [objective.tokens(sequence) for sequence in batch] == [64, 64, 64]
    language_model = model()
    whole = objective.loss(language_model, batch, Pass([0, 1, 2], 64)).item()
    assert whole == pytest.approx(math.log(382), rel=0.05)  # of a model that knows nothing yet
    parts = sum(objective.loss(language_model, batch, Pass([number], 64)).item() for number in range(3))
    assert parts == pytest.approx(whole, rel=1e-5)
    for number, sequence in enumerate(batch, 15):
        np.testing.assert_array_equal(sequence, LanguageModelObjective(tokens, RECIPE).example(number, 64))


def test_the_loss_falls_and_a_killed_run_ends_the_same(tmp_path: Path, tokens: TokenCache) -> None:
    whole = Trainer(model(), LanguageModelObjective(tokens, RECIPE), RECIPE, tmp_path / "whole")
    losses = [report.loss for report in whole.run()]
    assert losses[-1] < losses[0] - 0.5
    killed = Trainer(model(), LanguageModelObjective(tokens, RECIPE), RECIPE, tmp_path / "killed")
    run = killed.run()
    for _ in range(5):  # the state is that of step 3
        next(run)
    resumed = Trainer(model(), LanguageModelObjective(tokens, RECIPE), RECIPE, tmp_path / "killed")
    assert resumed.step == 3
    assert [report.loss for report in resumed.run()] == losses[3:]
    for name, value in whole.averaged_weights().items():
        torch.testing.assert_close(resumed.averaged_weights()[name], value, rtol=0, atol=0)


def test_the_held_out_loss_is_a_mean_over_tokens_by_file(tmp_path: Path) -> None:
    np.tile(np.arange(10, dtype=np.uint16), 30).tofile(tmp_path / "a.uint16")
    cache = TokenCache(tmp_path / "a.uint16", {"even": 200, "odd": 100})
    language_model = model()
    found = held_out_loss(
        language_model, [cache], replace(RECIPE, sequence_tokens=(64,), validation_tokens=65)
    )
    assert list(found) == ["even", "odd", "all"]
    first, second = cache.read(0, 65), cache.read(200, 265)
    nats = [
        summed_loss(language_model, [sequence], "float32", ALONE).item() / 64 for sequence in (first, second)
    ]
    assert found["even"]["nats"] == pytest.approx(nats[0], rel=1e-5)
    assert found["all"]["nats"] == pytest.approx(sum(nats) / 2, rel=1e-5)
    assert found["all"]["perplexity"] == pytest.approx(math.exp(sum(nats) / 2), rel=1e-4)
