"""Reading opens no connection, starts no program and writes no file, as the interpreter's audit events show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WATCHED = """
import os, sys

ACTS = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
        "os.mkdir", "os.remove", "os.rename", "os.truncate")

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def watch(event, arguments):
    if event in ACTS:
        told.append((event, arguments))
    elif event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        told.append((event, arguments))

from langchain_spscanner import SPScannerRetriever
from llama_index.retrievers.spscanner import SPScannerRetriever as LlamaRetriever
from llama_index.core.schema import Document

told = []
sys.addaudithook(watch)
from spscanner_rag import Scanner

text = "Anne was born in 1787. She signed the treaty. <script src='http://x.example/a.js'></script> http://x.example"
scanner = Scanner.from_pretrained()
scanner.scan("Who signed it?", text).context(max_tokens=50)
scanner.rank("Who signed it?", [text, "The well was dry."])
SPScannerRetriever.from_texts([text], scanner=scanner).invoke("Who signed it?")
LlamaRetriever([Document(text=text, id_="d")], scanner=scanner).retrieve("Who signed it?")
sys.exit(str(told) if told else 0)
"""


@pytest.mark.slow
def test_reading_connects_to_nothing_and_writes_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("HF_HUB_OFFLINE", None)  # nothing is asked for, rather than forbidden
    environment.pop("TRANSFORMERS_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
