import importlib.util
from typing import Any

import pytest
import torch

from spscanner_rag.lab.training.loop import choose_training_kernels

CPU = torch.device("cpu")


def test_numba_is_taken_where_it_is_installed() -> None:
    pytest.importorskip("numba")
    choice = choose_training_kernels(CPU, compiled=False)
    assert (choice.kernels.name, choice.kernels.packs) == ("numba", True)
    assert choice.reason == "numba is installed"


def test_compiled_layers_are_plain_torch() -> None:
    choice = choose_training_kernels(CPU, compiled=True)
    assert (choice.kernels.name, choice.reason) == ("torch", "compile is true")


def test_without_numba_training_is_plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def without_numba(name: str, *arguments: Any) -> object:
        return None if name == "numba" else found(name, *arguments)

    monkeypatch.setattr(importlib.util, "find_spec", without_numba)
    choice = choose_training_kernels(CPU, compiled=False)
    assert choice.kernels.name == "torch"
    assert 'pip install "spscanner-rag[cpu]"' in choice.reason
