import random
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.baselines.units import ChunkSegmenter
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.in_context.batches import batch_of, word_scores
from spscanner_rag.lab.in_context.model import BlockSearchModel, ReadingSettings
from spscanner_rag.lab.in_context.objective import Weights, batch_losses
from spscanner_rag.lab.in_context.run import InContextRecipe, train
from spscanner_rag.lab.training.data.columns import PassageColumn, PassageDraw
from spscanner_rag.lab.training.data.document_store import DocumentStore
from spscanner_rag.lab.training.recipe import Recipe
from tests.lab.in_context.conftest import SHAPE, digit_tokenizer  # noqa: F401 - fixture

RECIPE = InContextRecipe(steps=4, queries=2, learning_rate=1e-2, warmup_steps=1, save_every=2)
COLUMN = PassageColumn("Where was the otter?", ("The otter slept.", "The lynx slept.", "Nothing."))


@pytest.fixture
def passages(distinct: list[Document], tiny_tokenizer: Tokenizer) -> PassageDraw:
    return PassageDraw(
        DocumentStore(distinct), Recipe(rerank_negatives=2), ChunkSegmenter(12), tiny_tokenizer
    )


def small(tokenizer: Tokenizer) -> BlockSearchModel:
    ids = {
        "bos_token_id": tokenizer.token_to_id("<|begin|>"),
        "eos_token_id": tokenizer.token_to_id("<|end|>"),
    }
    return BlockSearchModel.new(tokenizer, SHAPE | ids, ReadingSettings(2))


def test_a_batch_shares_its_documents_and_draws_codes_anew() -> None:
    other = PassageColumn("Where was the lynx?", ("The lynx slept.", "The otter slept.", "It rained."))
    batch = batch_of([COLUMN, other], random.Random(0))
    assert sorted(batch.texts) == ["It rained.", "Nothing.", "The lynx slept.", "The otter slept."]
    assert [[batch.texts[n] for n in column] for column in batch.columns] == [
        list(COLUMN.passages),
        list(other.passages),
    ]
    assert len(set(batch.codes)) == 4
    assert batch_of([COLUMN, other], random.Random(1)).codes != batch.codes


def test_the_labelled_passage_is_the_teachers_best() -> None:
    scores = word_scores(replace(COLUMN, question="lynx"))
    assert scores[0] > scores[1] > scores[2]


def test_the_first_digits_are_guessed_and_the_auxiliary_loss_needs_its_weight(
    digit_tokenizer: Tokenizer,  # noqa: F811
) -> None:
    model = small(digit_tokenizer)
    batch = batch_of([COLUMN], random.Random(0))
    losses = batch_losses(model, batch, Weights())
    assert losses.digits.item() == pytest.approx(2.3026, abs=0.1)
    assert losses.auxiliary.item() == losses.routing.item() == losses.copying.item() == 0.0
    losses = batch_losses(model, batch, Weights(auxiliary=0.5))
    losses.auxiliary.backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
    assert model.ssmax.grad is not None
    assert model.ssmax.grad.abs().min() > 0


def test_routing_and_copying_are_losses_of_their_own(digit_tokenizer: Tokenizer) -> None:  # noqa: F811
    model = small(digit_tokenizer)
    batch = batch_of([COLUMN, replace(COLUMN, question="Where was the lynx?")], random.Random(0))
    weights = Weights(routing=2.0, copying=0.5)
    losses = batch_losses(model, batch, weights)
    assert losses.copying.item() == pytest.approx(2.3026, abs=0.2)
    right = torch.tensor([column[0] for column in batch.columns])
    documents = model.read_documents(batch.texts, batch.codes)
    routing = torch.cat(
        [model.read_queries(model.query_ids(question), documents).routing for question in batch.questions]
    )
    by_hand = -routing.log_softmax(1)[torch.arange(2), right].mean()
    torch.testing.assert_close(losses.routing, by_hand, rtol=0, atol=1e-5)
    assert losses.weighted(weights).item() == pytest.approx(
        losses.digits.item() + 2 * losses.routing.item() + 0.5 * losses.copying.item()
    )
    losses.routing.backward()  # type: ignore[no-untyped-call]
    gradient = model.decoder.model.layers[2].self_attn.k_proj.weight.grad  # of the routing layer
    assert gradient is not None
    assert gradient.abs().max() > 0


def test_a_killed_run_ends_the_same(
    digit_tokenizer: Tokenizer,  # noqa: F811
    passages: PassageDraw,
    tmp_path: Path,
) -> None:
    whole, killed, resumed = (small(digit_tokenizer) for _ in range(3))
    losses = [step.loss for step in train(whole, passages, RECIPE, tmp_path / "whole")]
    list(islice(train(killed, passages, RECIPE, tmp_path / "killed"), 3))  # the state is that of step 2
    steps = list(train(resumed, passages, RECIPE, tmp_path / "killed"))
    assert [step.step for step in steps] == [3, 4]
    assert [step.loss for step in steps] == losses[2:]
    assert all(step.auxiliary > 0 for step in steps)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], value, rtol=0, atol=0)
    with pytest.raises(ValueError, match="queries was 2 and is now 3"):
        list(train(small(digit_tokenizer), passages, replace(RECIPE, queries=3), tmp_path / "whole"))


@pytest.mark.slow
def test_it_learns_to_copy_the_code_of_the_only_document(digit_tokenizer: Tokenizer, tmp_path: Path) -> None:  # noqa: F811
    class Single:
        def column(self, number: int) -> PassageColumn:
            return PassageColumn("Which?", ("Nothing.",))

    model = small(digit_tokenizer)
    recipe = InContextRecipe(
        steps=400, queries=16, learning_rate=1e-3, warmup_steps=20, auxiliary_weight=0.0, save_every=400
    )
    losses = [step.loss for step in train(model, Single(), recipe, tmp_path)]
    assert sum(losses[:50]) / 50 > 2.25  # ten digits: ln 10 is 2.30
    assert sum(losses[-50:]) / 50 < 2.2


def test_bfloat16_products(digit_tokenizer: Tokenizer, passages: PassageDraw, tmp_path: Path) -> None:  # noqa: F811
    exact, rough = (
        [
            step.loss
            for step in train(
                small(digit_tokenizer), passages, replace(RECIPE, dtype=dtype), tmp_path / dtype
            )
        ]
        for dtype in ("float32", "bfloat16")
    )
    assert rough != exact
    assert rough == pytest.approx(exact, abs=0.05)
    with pytest.raises(ValueError, match="dtype is 'int8'"):
        InContextRecipe(dtype="int8")


@pytest.mark.parametrize(
    ("key", "value"), [("steps", 0), ("queries", 0), ("learning_rate", 0.0), ("temperature", -1.0)]
)
def test_keys_are_checked(key: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{key} is {value}"):
        InContextRecipe(**{key: value})  # type: ignore[arg-type]
