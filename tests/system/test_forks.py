"""Processes that were forked after torch computed."""

import pytest
import torch

from spscanner_rag.system import forks
from spscanner_rag.system.threads import use_threads


def test_a_forked_child_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(forks, "_computes_alone", False)
    forks._compute_alone()
    assert use_threads(4) == 1 == torch.get_num_threads()
    torch.set_num_threads(before)
