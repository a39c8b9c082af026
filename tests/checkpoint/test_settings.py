"""How a scanner reads documents: the object "spscanner" of config.json."""

import json
from dataclasses import replace
from typing import Any

import pytest

from spscanner_rag.checkpoint.config import ScannerSettings


def test_settings_round_trip() -> None:
    settings = ScannerSettings(
        "sentence", None, 256, True, True, True, {"data": ["squad11"], "steps": 3}, 300, True, 0.5
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
    assert ScannerSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_parts_of_the_lexical_channel_have_names() -> None:
    settings = ScannerSettings(match=True, prior=True, least_units=300)
    assert settings.lexical_names == ["match embedding", "BM25 prior", "short documents scored as 300 units"]
    compared = replace(settings, surroundings=True, text_weight=0.5)
    assert compared.lexical_names[-1] == "whole documents compared (weight 0.5)"
    assert ScannerSettings(least_units=300).lexical_names == []


def test_settings_left_out_are_off() -> None:
    assert ScannerSettings.from_dict({"format": 1, "segmenter": "reference"}) == ScannerSettings("reference")
    assert ScannerSettings() == ScannerSettings("sentence", None, None, False, False, False, {}, 0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"format": 2}, r"spscanner\.format is 2, .*newer version needed"),
        ({"format": 0}, r"spscanner\.format is 0; expected 1"),
        ({"format": "1"}, r"spscanner\.format is '1'"),
        ({"format": True}, r"spscanner\.format is True"),
        ({"format": None}, r"spscanner\.format is None"),
        ({"segmenter": "words"}, r"spscanner\.segmenter is 'words'"),
        ({"segmenter": ["sentence"]}, r"spscanner\.segmenter is \['sentence'\]"),
        ({"window_tokens": 0}, r"spscanner\.window_tokens is 0"),
        ({"window_tokens": 1.5}, r"spscanner\.window_tokens is 1\.5"),
        ({"reanchor_tokens": 0}, r"spscanner\.reanchor_tokens is 0; expected null or a whole number"),
        ({"reanchor_tokens": -256}, r"spscanner\.reanchor_tokens is -256"),
        ({"reanchor_tokens": "256"}, r"spscanner\.reanchor_tokens is '256'"),
        ({"reanchor_tokens": True}, r"spscanner\.reanchor_tokens is True"),
        ({"lexical": True}, r"spscanner\.lexical is True"),
        ({"lexical": {"match": 1}}, r"spscanner\.lexical\.match is 1"),
        ({"lexical": {"prior": "on"}}, r"spscanner\.lexical\.prior is 'on'"),
        ({"lexical": {"surroundings": True}}, r"lexical\.surroundings is true without lexical\.prior"),
        ({"lexical": {"text_weight": True}}, r"spscanner\.lexical\.text_weight is True; expected a number"),
        ({"lexical": {"text_weight": -0.1}}, r"spscanner\.lexical\.text_weight is -0\.1"),
        ({"lexical": {"text_weight": 101}}, r"spscanner\.lexical\.text_weight is 101; .*at most 100"),
        ({"lexical": {"text_weight": float("nan")}}, r"spscanner\.lexical\.text_weight is nan"),
        ({"lexical": {"text_weight": 1}}, r"text_weight is above 0 without lexical\.surroundings"),
        ({"lexical": {"soft": 1}}, r"spscanner\.lexical\.soft is 1; expected true or false"),
        ({"lexical": {"prior": True, "surroundings": True, "soft": True}},
         r"spscanner\.lexical\.soft is true without lexical\.match"),
        ({"lexical": {"bm25": True}}, r"spscanner\.lexical\.bm25: unknown key"),
        ({"lexical": {"least_units": -1}}, r"spscanner\.lexical\.least_units is -1; expected a whole number"),
        ({"lexical": {"least_units": True}}, r"spscanner\.lexical\.least_units is True"),
        ({"training": []}, r"spscanner\.training is \[\]"),
        ({"windows": 3}, r"spscanner\.windows: unknown key"),
    ],
)  # fmt: skip
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
