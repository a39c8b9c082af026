"""Which backend is chosen and why, what is refused, how mamba-ssm is loaded."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from spscanner_rag.mamba2 import backends
from spscanner_rag.mamba2.backends import choose_backend
from spscanner_rag.mamba2.kernels.torch import TORCH_KERNELS
from spscanner_rag.mamba2.kernels.triton import kernels as triton_kernels
from spscanner_rag.mamba2.kernels.triton.kernels import MambaKernels, load_operators
from spscanner_rag.scanner import Scanner

CPU, GPU = torch.device("cpu"), torch.device("cuda")
OURS = MambaKernels(Any)  # type: ignore[arg-type]
IN_ORDER = (
    r'with PyTorch .*, pip install "\.\[cuda\]" .*, then `pip install setuptools'
    r" wheel`, "
    r"then `MAMBA.* pip install --no-build-isolation --no-deps mamba-ssm`"
)


@pytest.fixture
def nvidia(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with a CUDA build of torch and a mamba-ssm that loads."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(backends, "load_kernels", lambda backend: OURS)
    return monkeypatch


def fail(backend: str) -> None:
    raise ImportError("mamba-ssm is not installed; do this")


def test_auto(nvidia: pytest.MonkeyPatch) -> None:
    assert choose_backend("auto", GPU) == (
        OURS,
        "the device is CUDA and mamba-ssm is installed",
    )
    kernels, reason = choose_backend("auto", torch.device("mps"))
    assert kernels is TORCH_KERNELS
    assert "NVIDIA" in reason
    nvidia.setattr(backends, "load_kernels", fail)
    assert choose_backend("auto", GPU) == (
        TORCH_KERNELS,
        "mamba-ssm is not installed; do this",
    )
    nvidia.setattr(torch.version, "cuda", None)  # as on ROCm
    assert choose_backend("auto", GPU).reason.startswith("the other kernels")


def test_by_name(nvidia: pytest.MonkeyPatch) -> None:
    for device in (CPU, GPU):
        assert choose_backend("torch", device) == (TORCH_KERNELS, "as asked for")
    assert choose_backend("mamba-ssm", GPU) == (OURS, "as asked for")
    nvidia.setattr(backends, "load_kernels", fail)
    with pytest.raises(ImportError, match="not installed"):
        choose_backend("mamba-ssm", GPU)


@pytest.mark.parametrize("interpreting", [False, True])
def test_mamba_ssm_on_the_cpu(nvidia: pytest.MonkeyPatch, interpreting: bool) -> None:
    nvidia.setattr(backends, "interpreting", lambda: interpreting)
    if interpreting:
        assert choose_backend("mamba-ssm", CPU).kernels is OURS
        return
    with pytest.raises(
        ValueError, match=f"CUDA devices only; got the device 'cpu'.*{IN_ORDER}"
    ) as caught:
        choose_backend("mamba-ssm", CPU)
    assert "\n" not in str(caught.value)


def test_scanner_refuses_before_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "interpreting", lambda: False)
    with pytest.raises(ValueError, match="runs on CUDA devices only"):
        Scanner.from_pretrained("/nowhere", backend="mamba-ssm", device="cpu")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mamba_ssm whose ``__init__`` cannot be imported, like 2.3.2.post1's here."""
    triton = tmp_path / "mamba_ssm" / "ops" / "triton"
    triton.mkdir(parents=True)
    (tmp_path / "mamba_ssm" / "__init__.py").write_text("import selective_scan_cuda\n")
    for folder in (triton, triton.parent):
        (folder / "__init__.py").write_text("")
    (triton / "layernorm_gated.py").write_text("def rmsnorm_fn(): return 'norm'\n")
    (triton / "ssd_combined.py").write_text(
        "from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn\n"
        "def mamba_chunk_scan_combined(): return 'scan', rmsnorm_fn()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(triton_kernels, "_require_versions", lambda: None)
    monkeypatch.setattr(triton_kernels, "interpreting", lambda: False)
    load_operators.cache_clear()
    yield tmp_path
    load_operators.cache_clear()


def of_mamba_ssm() -> list[str]:
    return [
        name
        for name in sys.modules
        if name.split(".")[0] in ("mamba_ssm", "selective_scan_cuda")
    ]


def test_operators_load_past_what_is_missing(installed: Path) -> None:
    scan, norm = load_operators()
    assert scan() == ("scan", "norm")
    assert norm() == "norm"
    assert of_mamba_ssm() == []
    assert load_operators()[0] is scan  # once per process


def test_a_loaded_mamba_ssm_is_left_as_it_is(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "mamba_ssm" / "__init__.py").write_text("")
    import mamba_ssm.ops.triton.ssd_combined as theirs  # type: ignore[import-not-found]

    before = {name: sys.modules[name] for name in of_mamba_ssm()}
    try:
        assert load_operators()[0] is not theirs.mamba_chunk_scan_combined
        assert {name: sys.modules[name] for name in of_mamba_ssm()} == before
    finally:
        for name in before:
            del sys.modules[name]


def test_what_cannot_be_imported_says_what_to_install(installed: Path) -> None:
    (installed / "mamba_ssm" / "ops" / "triton" / "ssd_combined.py").write_text(
        "import no_such_package\n"
    )
    with pytest.raises(ImportError, match=f"no_such_package.*{IN_ORDER}") as caught:
        load_operators()
    assert "\n" not in str(caught.value)
    assert of_mamba_ssm() == []


def test_mamba_ssm_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_kernels.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "mamba_ssm", raising=False)
    with pytest.raises(ImportError, match=f"mamba-ssm is not installed; {IN_ORDER}"):
        triton_kernels._require_versions()


@pytest.mark.parametrize(
    ("found", "refused"), [("2.2.6", True), ("1.9", True), ("2.3.2.post1", False)]
)
def test_versions(monkeypatch: pytest.MonkeyPatch, found: str, refused: bool) -> None:
    monkeypatch.setattr(triton_kernels.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(triton_kernels, "version", lambda name: found)
    monkeypatch.setitem(sys.modules, "triton", type(sys)("triton"))
    sys.modules["triton"].__version__ = "3.3"  # type: ignore[attr-defined]
    message = (
        f"mamba-ssm is {found}; expected 2.3"
        if refused
        else "triton is 3.3; expected 3.4"
    )
    with pytest.raises(ImportError, match=message):
        triton_kernels._require_versions()
