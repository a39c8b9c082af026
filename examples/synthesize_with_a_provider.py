"""Makes two link questions from text with a real provider, once through LlamaIndex and once through LangChain.

Needs the key of a provider, and the package of each framework that should be tried:

    pip install ".[llama-index,langchain,synthesize]" llama-index-llms-openai langchain-openai
    OPENAI_API_KEY=... python examples/synthesize_with_a_provider.py my_document.txt

It says what is missing. The two runs cost about a cent each with a small model.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "mistral": "MISTRAL_API_KEY"}
FRAMEWORKS = ("llama-index", "langchain")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("document", nargs="+", help="text files, each of several pages")
    parser.add_argument("--model", default="openai:gpt-4o-mini", help="PROVIDER:MODEL")
    parser.add_argument("--max-requests", default="20", help="most requests of each run")
    arguments = parser.parse_args()
    provider = arguments.model.partition(":")[0]
    key = KEYS.get(provider)
    if key is None:
        sys.exit(f"{provider}: expected one of {', '.join(KEYS)}")
    if not os.environ.get(key):
        sys.exit(f"{key} is not set: set it to the key of your account at the provider, then run this again")

    from spscanner_rag.apps.cli import main as spscanner

    worked = 0
    for framework in FRAMEWORKS:
        out = Path(tempfile.mkdtemp(prefix=f"synthesis-{framework}-"))
        print(f"== {framework}", flush=True)
        command = ["synthesize", *arguments.document, "--out", str(out), "--per-document", "2", "--most", "2"]
        model = ["--llm", f"{framework}:{arguments.model}", "--max-requests", arguments.max_requests]
        code = spscanner(
            [*command, *model]
        )  # a missing package is one line with the command that installs it
        if (out / "train.jsonl").exists():
            worked += 1
        elif code == 1:
            print("no example was made; the reasons are above")
    sys.exit(0 if worked else 1)


if __name__ == "__main__":
    main()
