r"""Trains a propositionizer: passage in, propositions out.

Source: Dense X Retrieval, Chen et al. 2024, section 3.

    python examples/training/propositionizer.py --base google/flan-t5-large --data
    train.jsonl --out DIR

The result is the retriever ``propositions:DIR``. Each line of the data has the fields
of the authors' release (chentong00/propositionizer-wiki-data on the Hub): "sources",
which is ``Title: T. Section: S. Content: C``, and "targets", a JSON list of
propositions, as a string or as a list. The paper distills GPT-4's propositions of about
42,000 passages into Flan-T5-large; we chose the learning rate, batch size and number of
epochs.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    get_linear_schedule_with_warmup,
)

from spscanner_lab.evidence.data_lines import json_objects

Example = tuple[list[int], list[int]]  # tokens of a passage and of its propositions
_NO_LABEL = -100  # torch's cross-entropy ignores this label


def main() -> None:
    """Train, and save the model after every epoch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", required=True, help="folder or Hub id of a T5 model")
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--validation", type=Path, nargs="+", default=[])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16, help="examples in a step")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument(
        "--most-tokens", type=int, default=512, help="longer examples are left out"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu"
    )
    given = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(given.base, trust_remote_code=False)
    model = AutoModelForSeq2SeqLM.from_pretrained(
        given.base, trust_remote_code=False, dtype=torch.float32
    )
    model.to(given.device)
    examples = read_examples(given.data, tokenizer, given.most_tokens)
    held_out = (
        read_examples(given.validation, tokenizer, given.most_tokens)
        if given.validation
        else []
    )
    torch.manual_seed(given.seed)
    steps = -(-len(examples) // given.batch) * given.epochs
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=given.learning_rate, weight_decay=0.01
    )
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 20, steps)
    for epoch in range(1, given.epochs + 1):
        random.Random(f"{given.seed}-{epoch}").shuffle(examples)
        model.train()
        losses = []
        for loss in losses_of(model, examples, given.batch):
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        line = f"epoch {epoch} of {given.epochs}  loss {sum(losses) / len(losses):.3f}"
        if held_out:
            model.eval()
            with torch.inference_mode():
                tested = [
                    loss.item() for loss in losses_of(model, held_out, given.batch)
                ]
            line += f"  validation {sum(tested) / len(tested):.3f}"
        print(line, file=sys.stderr, flush=True)
        model.save_pretrained(given.out)
        tokenizer.save_pretrained(given.out)


def read_examples(paths: list[Path], tokenizer: Any, most_tokens: int) -> list[Example]:  # noqa: ANN401
    """Return the examples of some files, as tokens, without those that are too long."""
    examples, left_out, expected = (
        list[Example](),
        0,
        "an object with strings under 'sources' and 'targets'",
    )
    for path in paths:
        for number, record in json_objects(path, expected):
            source, target = record.get("sources"), record.get("targets")
            try:
                wanted = json.loads(target) if isinstance(target, str) else target
            except ValueError:
                wanted = None
            if not isinstance(source, str) or not is_list_of_strings(wanted):
                raise SystemExit(
                    f"{path}, line {number}: expected {expected}, targets being a JSON"
                    " list of strings"
                )
            texts = (source, json.dumps(wanted, ensure_ascii=False))
            pair = tuple(
                ended(tokenizer(text, verbose=False).input_ids, tokenizer)
                for text in texts
            )
            if max(map(len, pair)) > most_tokens:
                left_out += 1
            else:
                examples.append(pair)
    print(
        f"{len(examples):,} examples; {left_out:,} of more than {most_tokens} tokens",
        file=sys.stderr,
    )
    if not examples:
        raise SystemExit(
            f"{paths[0]}: got no example; expected at least one of at most"
            f" {most_tokens} tokens"
        )
    return examples


def ended(ids: list[int], tokenizer: Any) -> list[int]:  # noqa: ANN401
    """Return the tokens of a text, with the end-of-sequence token at the end."""
    return (
        ids if ids[-1:] == [tokenizer.eos_token_id] else [*ids, tokenizer.eos_token_id]
    )


def is_list_of_strings(value: object) -> bool:
    """Return whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def losses_of(
    model: Any,  # noqa: ANN401
    examples: list[Example],
    batch: int,
) -> Iterator[torch.Tensor]:
    """Yield the loss of each batch: the cross-entropy of the propositions' tokens."""
    for start in range(0, len(examples), batch):
        sources, targets = zip(*examples[start : start + batch], strict=True)
        pad, device = model.config.pad_token_id, model.device
        ids = torch.nn.utils.rnn.pad_sequence(
            list(map(torch.tensor, sources)), True, pad
        ).to(device)
        lengths = torch.tensor(list(map(len, sources)), device=device)
        mask = torch.arange(ids.shape[1], device=device) < lengths[:, None]
        labels = torch.nn.utils.rnn.pad_sequence(
            list(map(torch.tensor, targets)), True, _NO_LABEL
        ).to(device)
        yield model(input_ids=ids, attention_mask=mask.long(), labels=labels).loss


if __name__ == "__main__":
    main()
