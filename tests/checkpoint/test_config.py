"""The contents of config.json: keys of transformers, and the object "spscanner"."""

import json
from dataclasses import replace
from typing import Any

import pytest

from spscanner_rag.checkpoint.config import ScannerSettings, read_config
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.text.keep_scale import KeepScale

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "vocab_size": 101,
    "num_heads": 4,
    "head_dim": 16,
    "n_groups": 2,
    "state_size": 8,
}
TRANSFORMERS = SIZES | {"model_type": "mamba2"}


def test_transformers_keys() -> None:
    raw = TRANSFORMERS | {
        "conv_kernel": 3,
        "use_bias": True,
        "use_conv_bias": False,
        "chunk_size": 64,
        "layer_norm_epsilon": 1e-3,
        "residual_in_fp32": False,
        "tie_word_embeddings": True,
        "time_step_limit": [0.01, 0.2],
        "initializer_range": 0.1,
        "norm_before_gate": True,
    }
    assert read_config(raw) == Mamba2Config(
        d_model=32,
        n_layer=2,
        vocab_size=101,
        pad_vocab_size_multiple=1,
        residual_in_fp32=False,
        tie_embeddings=True,
        norm_epsilon=1e-3,
        d_state=8,
        d_conv=3,
        expand=2,
        headdim=16,
        ngroups=2,
        norm_before_gate=False,
        dt_limit=(0.01, 0.2),
        bias=True,
        conv_bias=False,
        chunk_size=64,
    )


def test_transformers_defaults_are_those_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {
        "hidden_size": 512,
        "num_hidden_layers": 1,
        "num_heads": 16,
        "vocab_size": 64,
    }
    full = transformers.Mamba2Config(**sizes).to_dict()
    assert read_config({"model_type": "mamba2", **sizes}) == read_config(full)


@pytest.mark.parametrize(
    "limit", [[0.0, float("inf")], [0.0, {"__float__": "Infinity"}]]
)
def test_infinity_as_transformers_writes_it(limit: list[object]) -> None:
    assert read_config(TRANSFORMERS | {"time_step_limit": limit}).dt_limit == (
        0.0,
        float("inf"),
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "neither d_model .* nor hidden_size"),
        (
            TRANSFORMERS | {"model_type": "mamba"},
            "model_type is 'mamba'; expected 'mamba2'",
        ),
        (
            TRANSFORMERS | {"num_heads": 5},
            r"num_heads \* head_dim is 5 \* 16; expected .* = 64",
        ),
        (TRANSFORMERS | {"head_dim": 24}, r"headdim is 24; expected a divisor"),
        (TRANSFORMERS | {"time_step_limit": 3}, r"dt_limit is 3"),
        (
            TRANSFORMERS | {"hidden_act": "gelu"},
            "hidden_act is 'gelu'; expected 'silu'",
        ),
        (
            TRANSFORMERS | {"quantization_config": {"bits": 4}},
            "quantization_config is set",
        ),
        (
            {k: v for k, v in TRANSFORMERS.items() if k != "vocab_size"},
            "^vocab_size is None",
        ),
    ],
)
def test_refused_by_name(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_config(config)
    assert "\n" not in str(caught.value)


def test_settings_round_trip() -> None:
    settings = ScannerSettings(
        "sentence",
        None,
        256,
        True,
        True,
        True,
        {"data": ["squad11"], "steps": 3},
        300,
        True,
        0.5,
    )
    assert settings.to_dict() == {
        "format": 1,
        "segmenter": "sentence",
        "window_tokens": None,
        "reanchor_tokens": 256,
        "lexical": {
            "match": True,
            "prior": True,
            "surroundings": True,
            "soft": True,
            "least_units": 300,
            "text_weight": 0.5,
        },
        "training": {"data": ["squad11"], "steps": 3},
    }
    for each in (
        settings,
        replace(settings, meaning=MeaningWeights(sentence=2.5, near=-1)),
        replace(settings, keep=KeepScale(logit=1.5, best=-1.0, strict=0.7)),
    ):
        assert ScannerSettings.from_dict(json.loads(json.dumps(each.to_dict()))) == each


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"format": 2}, r"spscanner\.format is 2, .*newer version needed"),
        ({"format": "1"}, r"spscanner\.format is '1'"),
        ({"segmenter": "words"}, r"spscanner\.segmenter is 'words'"),
        ({"window_tokens": 1.5}, r"spscanner\.window_tokens is 1\.5"),
        (
            {"reanchor_tokens": 0},
            r"spscanner\.reanchor_tokens is 0; expected null or a whole number",
        ),
        ({"lexical": True}, r"spscanner\.lexical is True"),
        ({"lexical": {"match": 1}}, r"spscanner\.lexical\.match is 1"),
        (
            {"lexical": {"surroundings": True}},
            r"lexical\.surroundings is true without lexical\.prior",
        ),
        (
            {"lexical": {"text_weight": True}},
            r"spscanner\.lexical\.text_weight is True; expected a number",
        ),
        (
            {"lexical": {"text_weight": 101}},
            r"spscanner\.lexical\.text_weight is 101; .*at most 100",
        ),
        (
            {"lexical": {"text_weight": 1}},
            r"text_weight is 1 without lexical\.surroundings",
        ),
        (
            {"lexical": {"prior": True, "surroundings": True, "soft": True}},
            r"spscanner\.lexical\.soft is true without lexical\.match",
        ),
        ({"lexical": {"bm25": True}}, r"spscanner\.lexical\.bm25: unknown key"),
        (
            {"lexical": {"least_units": -1}},
            r"spscanner\.lexical\.least_units is -1; expected a whole number",
        ),
        ({"training": []}, r"spscanner\.training is \[\]"),
        ({"windows": 3}, r"spscanner\.windows: unknown key"),
        ({"keep": 3}, r"spscanner\.keep is 3; expected an object"),
        ({"keep": {"other": 1}}, r"spscanner\.keep\.other: unknown key"),
        ({"keep": {"logit": -1}}, r"spscanner\.keep\.logit is -1"),
        ({"meaning": 3}, r"spscanner\.meaning is 3; expected an object"),
        ({"meaning": {"sentence": "much"}}, r"spscanner\.meaning\.sentence is 'much'"),
        ({"meaning": {"wide": float("nan")}}, r"spscanner\.meaning\.wide is nan"),
        (
            {"meaning": {"deviation": 0}},
            r"spscanner\.meaning\.deviation is 0; expected a number above 0",
        ),
        ({"meaning": {"other": 1}}, r"spscanner\.meaning\.other: unknown key"),
    ],
)
def test_settings_refused_by_key(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScannerSettings.from_dict({"format": 1, "segmenter": "sentence"} | keys)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "spscanner is"),
        ({"format": 1}, r"spscanner\.segmenter is missing"),
        ({}, r"spscanner\.format is None"),
    ],
)
def test_settings_that_are_none(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScannerSettings.from_dict(value)
