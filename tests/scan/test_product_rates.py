"""Rates are those of products in the dtypes asked for, and measured once."""

import torch

from spscanner_rag.scan.product_rates import product_rates


def test_measured_once() -> None:
    first = product_rates(torch.bfloat16, torch.float32)
    assert len(first) == 2
    assert min(first) > 0
    assert product_rates(torch.bfloat16, torch.float32) is first
