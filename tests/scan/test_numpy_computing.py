"""What numpy computes is checked before anything is loaded."""

import pytest
import torch

from spscanner_rag.scan import numpy_computing as module
from spscanner_rag.scan.computing_choice import choose_computing, computes_on_cpu
from spscanner_rag.scan.numpy_computing import numpy_computing
from spscanner_rag.scanner import Scanner


@pytest.mark.parametrize("device", ["auto", "cpu", torch.device("cpu")])
@pytest.mark.parametrize("dtype", ["auto", "float32", torch.float32])
def test_the_cpu_in_float32_is_computed(device: object, dtype: object) -> None:
    assert numpy_computing("numpy", device, dtype).backend_reason == "as asked for"
    missing = numpy_computing("auto", device, dtype)
    assert missing.backend_reason == "torch is not installed"


@pytest.mark.parametrize(
    ("device", "dtype", "message"),
    [
        ("gpu", "auto", "device is 'gpu'; expected 'auto' or 'cpu'"),
        ("cpu", "int8", "dtype is 'int8'; expected 'auto' or 'float32'"),
        ("cuda:1", "auto", "got the device 'cuda:1': use backend='auto'"),
        ("auto", torch.bfloat16, "got the dtype 'bfloat16': use backend='auto'"),
    ],
)
def test_another_device_or_dtype_is_refused(
    device: object, dtype: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        numpy_computing("numpy", device, dtype)
    with pytest.raises(ValueError, match=message):
        Scanner.check_names(backend="numpy", device=device, dtype=dtype)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("backend", "device", "dtype", "got"),
    [
        ("auto", "cuda", "auto", "the device 'cuda'"),
        ("auto", "cpu", "bfloat16", "the dtype 'bfloat16'"),
        ("numba", "cpu", "auto", "the backend 'numba'"),
    ],
)
def test_without_torch_the_line_that_installs_it_is_said(
    monkeypatch: pytest.MonkeyPatch, backend: str, device: str, dtype: str, got: str
) -> None:
    monkeypatch.setattr(module, "torch_is_installed", lambda: False)
    message = f'got {got}, which needs torch; expected .*: pip install "torch'
    with pytest.raises(ImportError, match=message):
        numpy_computing(backend, device, dtype)


def test_numpy_computes_where_it_is_asked_for_by_name() -> None:
    scanner = Scanner.from_pretrained(backend="numpy")
    assert (scanner.backend, str(scanner.device), scanner.dtype) == (
        "numpy",
        "cpu",
        "float32",
    )
    assert scanner.device.type == "cpu"
    assert computes_on_cpu("cuda", "numpy")
    assert repr(scanner) == "Scanner('default', device='cpu', dtype='float32')"
    with pytest.raises(ValueError, match="backend is 'nunpy'; expected 'auto'"):
        choose_computing("nunpy", "cpu", "auto")
