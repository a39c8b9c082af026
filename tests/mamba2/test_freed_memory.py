"""What is freed is there for the next allocation, without the system clearing it again."""

import platform
import subprocess
import sys

import pytest

TENSORS, TENSOR_BYTES, ROUNDS = 8, 4 * 2**20, 10
SCRIPT = f"""
import resource, torch
from spscanner_rag.mamba2.freed_memory import keep_freed_memory

def fill():
    return [torch.ones({TENSOR_BYTES}, dtype=torch.uint8) for _ in range({TENSORS})]

keep_freed_memory()
for _ in range(3):
    fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    fill()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other rules")
def test_memory_is_not_cleared_for_every_tensor() -> None:
    # in a process of its own: glibc learns from all that was freed before
    answer = subprocess.run([sys.executable, "-c", SCRIPT], check=True, stdout=subprocess.PIPE, text=True)
    pages = ROUNDS * TENSORS * TENSOR_BYTES // 4096
    assert int(answer.stdout) < pages / 20
