"""Uses a scanner from the Hugging Face Hub on a GPU as a LlamaIndex retriever.

    pip install ".[llama-index]"
    python examples/hub_checkpoint.py --model MambaRetriever/SPScanner-130m --device cuda

The token for a private checkpoint comes from the environment (HF_TOKEN) or from `hf auth login`.
"""

import argparse
import sys
from pathlib import Path

try:
    from llama_index.core import Document

    from llama_index.retrievers.spscanner import SPScannerRetriever
except ImportError as error:
    sys.exit(f'{error}: pip install ".[llama-index]"')

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spscanner_rag.checkpoint import CheckpointError

NOVEL = Path(__file__).parent / "data" / "persuasion.txt"
QUESTION = "Who persuaded Anne to give up her engagement to Captain Wentworth?"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--model", default="MambaRetriever/SPScanner-130m", help="Hub id or local folder")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, mps, cpu or auto")
    parser.add_argument("--dtype", default="auto", help="bfloat16, float32 or auto")
    parser.add_argument("--local-files-only", action="store_true", help="use only downloaded files")
    parser.add_argument("--top-k", type=int, default=10, help="sentences to show")
    parser.add_argument("--characters", type=int, help="how much of the novel is read (default: all)")
    arguments = parser.parse_args()
    text = NOVEL.read_text(encoding="utf-8")[: arguments.characters]

    try:
        retriever = SPScannerRetriever.from_documents(
            [Document(text=text, id_="persuasion")],
            model=arguments.model,
            device=arguments.device,
            dtype=arguments.dtype,
            model_kwargs={"local_files_only": arguments.local_files_only},
            similarity_top_k=arguments.top_k,
        )
        found = retriever.retrieve(arguments.question)
    except (CheckpointError, ValueError) as error:  # no such checkpoint or device
        sys.exit(str(error))

    table = Table(title=Text(arguments.question))
    for name in ("score", "characters", "sentence"):
        table.add_column(name)
    for sentence in found:
        span = f"{sentence.node.start_char_idx}-{sentence.node.end_char_idx}"
        table.add_row(f"{sentence.score:.3f}", span, Text(" ".join(sentence.node.get_content().split())))
    Console().print(table)


if __name__ == "__main__":
    main()
