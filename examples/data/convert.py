r"""Converts public question files, from clones of their repositories, to question files of this package.

    python examples/data/convert.py qmsum QMSum/data/ALL/val --out qmsum-dev.jsonl
    python examples/data/convert.py hotpotqa dev.json --out hotpotqa-dev.jsonl
    python examples/data/convert.py limit limit-small --out limit.jsonl
    python examples/data/convert.py squad dev-v2.0.json --out squad.jsonl

It prints a digest of the ids, texts, questions and evidence. README.md beside it has the repository and the commit
of each source, and the digest of what docs/results.md was measured on.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]
Span = tuple[int, int]


def joined(parts: Iterable[str], between: str) -> tuple[str, list[Span]]:
    """Parts as one text, and the span of each."""
    text, spans = "", []
    for part in parts:
        text += between if text else ""
        spans.append((len(text), len(text) + len(part)))
        text += part
    return text, spans


def qmsum(folder: Path) -> Iterator[Line]:
    """Meetings of QMSum, a file each: specific queries and topics, whose evidence is turns of speakers."""
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        turns = [f"{turn['speaker']}: {turn['content']}" for turn in record["meeting_transcripts"]]
        text, spans = joined(turns, "\n")
        asked = [
            *((f"s{n}", each["query"], each["relevant_text_span"])
              for n, each in enumerate(record["specific_query_list"])),
            *((f"t{n}", each["topic"], each["relevant_text_span"]) for n, each in enumerate(record["topic_list"])),
        ]  # fmt: skip
        questions = []
        for name, question, ranges in asked:
            turns_of = sorted({turn for first, last in ranges for turn in range(int(first), int(last) + 1)})
            evidence = [spans[turn] for turn in turns_of if turn < len(spans)]
            questions.append({"qid": f"{path.stem}#{name}", "question": question, "evidence": evidence})
        yield line("qmsum", path.stem, text, questions)


def hotpotqa(file: Path) -> Iterator[Line]:
    """Ten articles, joined, for each question of HotpotQA; its evidence is the supporting sentences."""
    for record in json.loads(file.read_text(encoding="utf-8")):
        parts: list[str] = []
        places: dict[tuple[str, int], int] = {}
        for title, sentences in record["context"]:
            parts += [f"{title}\n" if not parts else f"\n\n{title}\n"]
            for number, sentence in enumerate(sentences):
                places[title, number] = len(parts)
                parts.append(sentence)
        text, spans = joined(parts, "")
        evidence = []
        for title, number in record["supporting_facts"]:
            if (title, number) in places:
                start, end = spans[places[title, number]]
                own = text[start:end]
                evidence.append((start + len(own) - len(own.lstrip()), end - len(own) + len(own.rstrip())))
        asked = {"qid": record["_id"], "question": record["question"], "answers": [record["answer"]]}
        yield line("hotpotqa_sample", record["_id"], text, [asked | {"evidence": sorted(evidence)}])


def limit(folder: Path) -> Iterator[Line]:
    """LIMIT-small: all persons in one document, each of whom is evidence of what is asked about their likings."""

    def lines(name: str) -> list[Line]:
        return [json.loads(each) for each in (folder / name).read_text(encoding="utf-8").splitlines()]

    persons = lines("corpus.jsonl")
    text, spans = joined((person["text"] for person in persons), "\n\n")
    place = {person["_id"]: span for person, span in zip(persons, spans, strict=True)}
    relevant: dict[str, list[str]] = {}
    for judged in lines("qrels.jsonl"):
        if judged["score"] > 0:
            relevant.setdefault(judged["query-id"], []).append(judged["corpus-id"])
    questions = [
        {"qid": query["_id"], "question": query["text"], "answers": relevant[query["_id"]],
         "evidence": sorted(place[person] for person in relevant[query["_id"]])}
        for query in lines("queries.jsonl")
    ]  # fmt: skip
    yield line("limit_small", "all", text, questions)


def squad(file: Path) -> Iterator[Line]:
    """Whole articles of SQuAD 1.1 or 2.0; the evidence is the first of the answers."""
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        text, spans = joined((paragraph["context"] for paragraph in article["paragraphs"]), "\n\n")
        questions = []
        for (start, _), paragraph in zip(spans, article["paragraphs"], strict=True):
            for asked in paragraph["qas"]:
                answers = [(start + each["answer_start"], each["text"]) for each in asked["answers"]]
                questions.append({
                    "qid": asked["id"],
                    "question": asked["question"].strip(),
                    "answers": list(dict.fromkeys(words for _, words in answers)),
                    "evidence": [(first, first + len(words)) for first, words in answers[:1]],
                    "answerable": bool(answers),
                })  # fmt: skip
        yield line("squad", article["title"], text, questions)


def line(source: str, name: str, text: str, questions: list[Line]) -> Line:
    """A line of a question file."""
    return {
        "doc_id": f"{source.removesuffix('_sample')}/{name}",
        "source": source,
        "text": text,
        "questions": questions,
    }


def digest_of(lines: Iterable[Line]) -> str:
    """SHA-256 of the ids, texts, questions and evidence, whatever their order and their other keys."""
    kept = sorted(
        [
            each["doc_id"],
            each["text"],
            sorted([q["qid"], q["question"], q["evidence"]] for q in each["questions"]),
        ]
        for each in lines
    )
    return hashlib.sha256(json.dumps(kept).encode()).hexdigest()


FORMATS: dict[str, Callable[[Path], Iterator[Line]]] = {
    "qmsum": qmsum, "hotpotqa": hotpotqa, "limit": limit, "squad": squad,
}  # fmt: skip


def main() -> None:
    """Convert, write and print the digest."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("path", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    lines = list(FORMATS[given.format](given.path))
    with given.out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in lines)
    print(f"{sum(len(each['questions']) for each in lines):,} questions on {len(lines):,} documents")
    print(f"digest {digest_of(lines)}")


if __name__ == "__main__":
    main()
