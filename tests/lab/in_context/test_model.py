import copy
import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from spscanner_lab.in_context.model import (
    SETTINGS_FILE,
    STARTS,
    BlockSearchModel,
    DocumentKeys,
    Gate,
    ReadingSettings,
)
from spscanner_lab.in_context.prompt import DOCUMENT_TOKENS
from tests.lab.in_context.conftest import SHAPE, TEXTS, with_settings

QUERY = "Who signed the treaty?"
CODES = [7421, 3, 9999, 120, 4567]


@pytest.fixture
def model(model: BlockSearchModel) -> BlockSearchModel:
    """The model of all tests in float64.

    Rounding in float32 alone is 1e-5 on some processors.
    """
    return copy.deepcopy(model).double()


def logits(
    model: BlockSearchModel, documents: DocumentKeys, query: str = QUERY
) -> Tensor:
    with torch.inference_mode():
        return model.read_queries(model.query_ids(query), documents).logits[0]


@torch.inference_mode()
def with_explicit_mask(
    model: BlockSearchModel, texts: list[str], codes: list[int]
) -> Tensor:
    """One row of all documents and the query, read by transformers: (tokens, 10).

    The mask has four dimensions.
    """
    rows = [
        model.layout.document(text, code)[0]
        for text, code in zip(texts, codes, strict=True)
    ]
    query = model.layout.query(QUERY)
    lengths = [*map(len, rows), len(query)]
    total, place = sum(lengths), 0
    seen = torch.zeros(total, total, dtype=torch.bool)
    positions = []
    for length in lengths:
        end = place + length
        seen[place:end, place:end] = torch.ones(length, length, dtype=torch.bool).tril()
        positions.append(torch.arange(length))
        place = end
    seen[total - len(query) :, : total - len(query)] = True
    positions[-1] = positions[-1] + DOCUMENT_TOKENS
    mask = torch.zeros(total, total, dtype=model.decoder.dtype).masked_fill(
        ~seen, -torch.inf
    )[None, None]
    ids = torch.cat([torch.from_numpy(row) for row in [*rows, query]])[None]
    out = model.decoder(
        input_ids=ids,
        attention_mask=mask,
        position_ids=torch.cat(positions)[None],
        use_cache=False,
    )
    found: Tensor = out.logits[0, -len(query) :, list(model.layout.digits)]
    return found


def test_documents_as_rows_equal_an_explicit_mask_over_all_tokens(
    model: BlockSearchModel,
) -> None:
    plain = with_settings(model, attention="plain")
    documents = plain.read_documents(TEXTS, CODES)
    expected = with_explicit_mask(plain, TEXTS, CODES)
    assert expected.std() > 0.1
    torch.testing.assert_close(
        logits(plain, documents).double(), expected, rtol=0, atol=1e-5
    )


def test_ssmax_is_plain_attention_where_its_factor_is_one(
    model: BlockSearchModel,
) -> None:
    documents = model.read_documents(TEXTS, CODES)
    plain = logits(with_settings(model, attention="plain"), documents)
    assert torch.allclose(model.scalars.float(), torch.full((4,), STARTS["ssmax"]))
    assert (logits(model, documents) - plain).abs().max() > 1e-3
    model.scalars = torch.nn.Parameter(torch.full((4,), 1 / math.log(len(TEXTS))))
    torch.testing.assert_close(logits(model, documents), plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("best", [5, 6, 1000])
def test_as_many_best_documents_as_there_are_is_no_routing(
    model: BlockSearchModel, best: int
) -> None:
    documents = model.read_documents(TEXTS, CODES)
    routed = with_settings(model, best_documents=best, routing_layer=1)
    dense = with_settings(model, routing_layer=3)
    torch.testing.assert_close(
        logits(routed, documents), logits(dense, documents), rtol=0, atol=0
    )


def test_above_the_routing_layer_only_the_best_documents_are_keys(
    model: BlockSearchModel,
) -> None:
    documents = model.read_documents(TEXTS, CODES)
    routed = with_settings(model, best_documents=2, routing_layer=1)
    with torch.inference_mode():
        read = routed.read_queries(routed.query_ids(QUERY), documents)
    assert read.selected is not None
    assert read.selected.tolist() == sorted(read.routing[0].topk(2).indices.tolist())
    changed = ~torch.isin(documents.document_of, read.selected)
    noise = [layer.clone() for layer in documents.values]
    for layer in (2, 3):
        noise[layer][:, changed] += 1.0
    others = DocumentKeys(
        documents.keys, tuple(noise), documents.lengths, documents.codes
    )
    torch.testing.assert_close(logits(routed, others), read.logits[0], rtol=0, atol=0)
    dense = with_settings(model, routing_layer=3)
    assert (logits(dense, others) - logits(dense, documents)).abs().max() > 1e-3


@pytest.mark.parametrize("length", [0.0, 1.0, 3.6])
def test_the_sink_acts_in_training_alone_and_more_the_longer_the_corpus(
    model: BlockSearchModel, length: float
) -> None:
    plain, sink = (
        with_settings(model, attention="plain"),
        with_settings(model, attention="sink"),
    )
    documents = plain.read_documents(TEXTS, CODES)
    expected, sink.gate = logits(plain, documents), Gate(length, 1.0)
    torch.testing.assert_close(logits(sink, documents), expected, rtol=0, atol=0)
    sink.train()
    least = (logits(sink, documents) - expected).abs().max()
    sink.gate = Gate(length + 2, 1.0)
    assert (logits(sink, documents) - expected).abs().max() > least > 0


def test_a_qwen3_folder_loads_and_a_saved_model_is_the_same(
    model: BlockSearchModel, tmp_path: Path
) -> None:
    changed = with_settings(model, routing_layer=1, best_documents=3, codes="position")
    changed.scalars = torch.nn.Parameter(torch.tensor([0.1, 0.2, 0.3, 0.4]))
    changed.save(tmp_path / "own")
    loaded = BlockSearchModel.from_pretrained(tmp_path / "own")
    assert loaded.settings == ReadingSettings(1, 3, "ssmax", "position")
    for attention, start in STARTS.items():
        other = BlockSearchModel.from_pretrained(
            tmp_path / "own", attention=attention, best_documents=10_000
        )
        assert other.settings == ReadingSettings(1, 10_000, attention, "position")
        expected = changed.scalars if attention == "ssmax" else torch.full((4,), start)
        torch.testing.assert_close(other.scalars, expected, check_dtype=False)
    documents = changed.read_documents(TEXTS, CODES)
    torch.testing.assert_close(
        logits(loaded, loaded.read_documents(TEXTS, CODES)),
        logits(changed, documents),
        rtol=0,
        atol=1e-5,
    )
    (tmp_path / "own" / SETTINGS_FILE).unlink()  # as in Qwen3 folders
    plain = BlockSearchModel.from_pretrained(tmp_path / "own")
    assert plain.settings == ReadingSettings(routing_layer=2)  # as 16 of 28
    torch.testing.assert_close(plain.scalars.detach(), torch.full((4,), 0.43))


def test_what_no_model_can_read(model: BlockSearchModel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="routing_layer is 4; expected 0 to 3"):
        with_settings(model, routing_layer=SHAPE["num_hidden_layers"])
    for wrong in ({"attention": "softmax"}, {"codes": "sequential"}):
        with pytest.raises(ValueError, match="expected one of"):
            with_settings(model, **wrong)
    model.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no tokenizer\.json"):
        BlockSearchModel.from_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "llama"}))
    with pytest.raises(ValueError, match="type 'llama'; expected qwen3"):
        BlockSearchModel.from_pretrained(tmp_path)
