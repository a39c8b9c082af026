"""Mamba2Config: mamba-ssm's keys, values derived from them, and refusals."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.mamba2.config import Mamba2Config

MAMBA2 = {
    "d_model": 32,
    "n_layer": 2,
    "vocab_size": 101,
    "ssm_cfg": {"layer": "Mamba2", "headdim": 16},
}


def with_top(**keys: Any) -> dict[str, Any]:
    return MAMBA2 | keys


def with_ssm(**keys: Any) -> dict[str, Any]:
    return MAMBA2 | {"ssm_cfg": MAMBA2["ssm_cfg"] | keys}  # type: ignore[operator]


def test_sizes() -> None:
    # mamba2-130m: shapes as in the published file
    config = Mamba2Config(
        d_model=768, n_layer=24, vocab_size=50277, pad_vocab_size_multiple=16
    )
    assert (config.d_inner, config.nheads, config.conv_dim, config.d_in_proj) == (
        1536,
        24,
        1792,
        3352,
    )
    assert config.padded_vocab_size == 50288
    config = Mamba2Config(
        d_model=96, n_layer=3, vocab_size=1003, d_state=16, headdim=32, ngroups=2
    )
    assert (config.conv_dim, config.d_in_proj, config.padded_vocab_size) == (
        192 + 2 * 2 * 16,
        454,
        1008,
    )
    assert (
        Mamba2Config(d_model=32, n_layer=1, vocab_size=64, headdim=32).padded_vocab_size
        == 64
    )


def test_defaults_are_those_of_mamba_ssm() -> None:
    config = Mamba2Config.from_dict(with_ssm(headdim=64))
    assert config == Mamba2Config(d_model=32, n_layer=2, vocab_size=101)
    assert (config.d_state, config.d_conv, config.expand, config.ngroups) == (
        128,
        4,
        2,
        1,
    )
    assert (config.rmsnorm, config.norm_before_gate, config.bias, config.conv_bias) == (
        True,
        False,
        False,
        True,
    )
    assert config.dt_limit == (0.0, float("inf"))
    assert config.pad_vocab_size_multiple == 8


CONFIGS = st.builds(
    Mamba2Config,
    d_model=st.sampled_from([32, 48]),
    n_layer=st.integers(1, 100),
    vocab_size=st.integers(1, 10**6),
    pad_vocab_size_multiple=st.integers(1, 64),
    residual_in_fp32=st.booleans(),
    tie_embeddings=st.booleans(),
    norm_epsilon=st.floats(0, 0.5),
    d_state=st.integers(1, 512),
    d_conv=st.integers(1, 8),
    expand=st.integers(1, 4),
    headdim=st.sampled_from([4, 8]),
    ngroups=st.sampled_from([1, 2]),
    D_has_hdim=st.booleans(),
    rmsnorm=st.booleans(),
    norm_before_gate=st.booleans(),
    dt_limit=st.sampled_from([(0.0, float("inf")), (0.001, 0.1), (0.5, float("inf"))]),
    bias=st.booleans(),
    conv_bias=st.booleans(),
    chunk_size=st.integers(1, 1024),
)


@given(CONFIGS)
def test_round_trip_through_json(config: Mamba2Config) -> None:
    assert Mamba2Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize(
    "config",
    [
        *(
            with_top(**{key: None})
            for key in ("fused_add_norm", "attn_cfg", "architectures", "spscanner")
        ),
        with_top(d_intermediate=0),
        with_top(attn_layer_idx=[]),
        with_top(attn_layer_idx=None),
        with_ssm(d_ssm=None),
        *(
            with_ssm(**{key: 1})
            for key in (
                "conv_init",
                "A_init_range",
                "dt_min",
                "dt_max",
                "dt_init_floor",
                "use_mem_eff_path",
                "layer_idx",
                "process_group",
                "sequence_parallel",
                "device",
                "dtype",
            )
        ),
    ],
)
def test_what_changes_no_number_is_ignored(config: dict[str, Any]) -> None:
    assert Mamba2Config.from_dict(config) == Mamba2Config.from_dict(MAMBA2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            with_top(ssm_cfg={}),
            r"ssm_cfg\.layer is missing, which means Mamba-1.*expected Mamba2",
        ),
        (with_top(ssm_cfg=None), r"ssm_cfg\.layer is missing, which means Mamba-1"),
        (
            {key: MAMBA2[key] for key in ("d_model", "n_layer", "vocab_size")},
            "which means Mamba-1",
        ),
        (with_ssm(layer="Mamba1"), r"ssm_cfg\.layer is Mamba1"),
        (with_ssm(layer="Mamba3"), r"ssm_cfg\.layer is 'Mamba3'"),
        (with_ssm(d_ssm=32), r"ssm_cfg\.d_ssm is 32"),
        (with_top(attn_layer_idx=[1]), r"attn_layer_idx is \[1\]: attention layers"),
        (with_top(d_intermediate=64), r"d_intermediate is 64: MLP"),
        (with_top(rms_norm=False), r"rms_norm is false: layer norm"),
        (with_top(ssm_cfg=[1]), r"ssm_cfg is \[1\]; expected an object"),
        (with_top(bidirectional=True), r"^bidirectional is not a key"),
        (with_ssm(activation="relu"), r"^ssm_cfg\.activation is not a key"),
        (with_ssm(headdim=24), r"ssm_cfg\.headdim is 24; expected a divisor of .* 64"),
        (
            with_ssm(ngroups=3),
            r"ssm_cfg\.ngroups is 3; expected a divisor of the 4 heads",
        ),
        (with_ssm(dt_limit=[0.2, 0.1]), r"ssm_cfg\.dt_limit is \[0\.2, 0\.1\]"),
        (with_ssm(dt_limit=[-1, 0.1]), r"ssm_cfg\.dt_limit"),
        (with_ssm(dt_limit=[0.1]), r"ssm_cfg\.dt_limit"),
        (with_ssm(dt_limit=[0, "inf"]), r"ssm_cfg\.dt_limit"),
        (with_ssm(dt_limit=[float("nan"), 1]), r"ssm_cfg\.dt_limit"),
        (with_ssm(dt_limit=7), r"ssm_cfg\.dt_limit is 7"),
        (with_top(norm_epsilon="small"), "norm_epsilon is 'small'"),
        (with_top(norm_epsilon=-1e-5), "norm_epsilon is -1e-05"),
    ],
)
def test_refused_by_name(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Mamba2Config.from_dict(config)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["d_model", "n_layer", "vocab_size"])
def test_missing_size(key: str) -> None:
    with pytest.raises(ValueError, match=f"^{key} is missing"):
        Mamba2Config.from_dict({k: v for k, v in MAMBA2.items() if k != key})


@pytest.mark.parametrize("with_key", [with_top, with_ssm])
@pytest.mark.parametrize("value", [0, -1, 1.5, "8", True])
def test_whole_numbers(with_key: Callable[..., dict[str, Any]], value: object) -> None:
    top, ssm = (
        "d_model n_layer vocab_size pad_vocab_size_multiple",
        "d_state d_conv expand headdim ngroups chunk_size",
    )
    for key in (top if with_key is with_top else ssm).split():
        with pytest.raises(
            ValueError, match=rf"^(ssm_cfg\.)?{key} is .*expected a whole number"
        ):
            Mamba2Config.from_dict(with_key(**{key: value}))


@pytest.mark.parametrize("with_key", [with_top, with_ssm])
def test_switches(with_key: Callable[..., dict[str, Any]]) -> None:
    top, ssm = (
        "rms_norm residual_in_fp32 tie_embeddings",
        "D_has_hdim rmsnorm norm_before_gate bias conv_bias",
    )
    for key in (top if with_key is with_top else ssm).split():
        with pytest.raises(
            ValueError, match=rf"^(ssm_cfg\.)?{key} is 1; expected true or false"
        ):
            Mamba2Config.from_dict(with_key(**{key: 1}))
