"""Reading opens no connection, starts no program and writes no file.

The interpreter's audit events show it.

The exception is the code that numba compiles, once, for ``backend="numba"``.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WATCHED = """
import os, sys

ACTS = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system",
        "os.exec", "os.posix_spawn",
        "os.mkdir", "os.remove", "os.rename", "os.truncate")

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

CACHE = os.environ["NUMBA_CACHE_DIR"]  # where numba keeps the code that it compiles

def watch(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
    if (event in ACTS or writes) and not str(arguments[0]).startswith(CACHE):
        told.append((event, arguments))

from langchain_spscanner import SPScannerRetriever
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaRetriever
from llama_index.core.schema import Document

told = []
sys.addaudithook(watch)
from spscanner_rag import Scanner

page = "<script src='http://x.example/a.js'></script> http://x.example"
text = f"Anne was born in 1787. She signed the treaty. {page}"
scanner = Scanner.from_pretrained(backend=sys.argv[1])
scanner.scan("Who signed it?", text).context(max_tokens=50)
scanner.rank("Who signed it?", [text, "The well was dry."])
SPScannerRetriever.from_texts([text], scanner=scanner).invoke("Who signed it?")
document = Document(text=text, id_="d")
LlamaRetriever([document], scanner=scanner).retrieve("Who signed it?")
sys.exit(str(told) if told else 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_reading_connects_to_nothing_and_writes_nothing(
    tmp_path: Path, backend: str
) -> None:
    cache, here = tmp_path / "cache", tmp_path / "here"
    here.mkdir()
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(cache),
    }
    # not requested at all, rather than forbidden
    environment.pop("HF_HUB_OFFLINE", None)
    environment.pop("TRANSFORMERS_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, backend],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(here.iterdir()) == []
    assert cache.exists() == (backend == "numba")
