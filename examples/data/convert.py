r"""Converts public question files to question files of this package.

The files come from clones of their repositories.

    python examples/data/convert.py qmsum QMSum/data/ALL/val --out qmsum-dev.jsonl

It prints a digest of the ids, texts, questions and evidence. README.md in this folder
has the repository, commit and path of each source, and the digest of the file that
docs/results.md was measured on.
"""

import argparse
import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

Line = dict[str, Any]
Span = tuple[int, int]


def joined(parts: Iterable[str], between: str) -> tuple[str, list[Span]]:
    """Join parts to one text, and return it with the span of each part."""
    text, spans = "", []
    for part in parts:
        text += between if spans else ""
        spans.append((len(text), len(text) + len(part)))
        text += part
    return text, spans


def qmsum(folder: Path) -> Iterator[Line]:
    """Convert meetings of QMSum, one per file.

    The evidence for specific queries and topics is speakers' turns.
    """
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        turns = [
            f"{turn['speaker']}: {turn['content']}"
            for turn in record["meeting_transcripts"]
        ]
        text, spans = joined(turns, "\n")
        asked = [
            *(
                (f"s{n}", each["query"], each["relevant_text_span"])
                for n, each in enumerate(record["specific_query_list"])
            ),
            *(
                (f"t{n}", each["topic"], each["relevant_text_span"])
                for n, each in enumerate(record["topic_list"])
            ),
        ]
        questions = []
        for name, question, ranges in asked:
            turns_of = sorted(
                {
                    turn
                    for first, last in ranges
                    for turn in range(int(first), int(last) + 1)
                }
            )
            evidence = [spans[turn] for turn in turns_of if turn < len(spans)]
            questions.append(
                {
                    "qid": f"{path.stem}#{name}",
                    "question": question,
                    "evidence": evidence,
                }
            )
        yield line("qmsum", path.stem, text, questions)


def hotpotqa(file: Path) -> Iterator[Line]:
    """Join the ten articles of each HotpotQA question to a document.

    Its evidence is the supporting sentences.
    """
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
                evidence.append(
                    (
                        start + len(own) - len(own.lstrip()),
                        end - len(own) + len(own.rstrip()),
                    )
                )
        asked = {
            "qid": record["_id"],
            "question": record["question"],
            "answers": [record["answer"]],
        }
        yield line(
            "hotpotqa_sample",
            record["_id"],
            text,
            [asked | {"evidence": sorted(evidence)}],
        )


def limit(folder: Path) -> Iterator[Line]:
    """Convert LIMIT-small: one document of all persons.

    Evidence for a question is the persons who like it.
    """

    def lines(name: str) -> list[Line]:
        return [
            json.loads(each)
            for each in (folder / name).read_text(encoding="utf-8").splitlines()
        ]

    persons = lines("corpus.jsonl")
    text, spans = joined((person["text"] for person in persons), "\n\n")
    place = {person["_id"]: span for person, span in zip(persons, spans, strict=True)}
    relevant: dict[str, list[str]] = {}
    for judged in lines("qrels.jsonl"):
        if judged["score"] > 0:
            relevant.setdefault(judged["query-id"], []).append(judged["corpus-id"])
    questions = [
        {
            "qid": query["_id"],
            "question": query["text"],
            "answers": relevant[query["_id"]],
            "evidence": sorted(place[person] for person in relevant[query["_id"]]),
        }
        for query in lines("queries.jsonl")
    ]
    yield line("limit_small", "all", text, questions)


def squad(file: Path) -> Iterator[Line]:
    """Convert whole articles of SQuAD 1.1 or 2.0.

    The evidence is the first of the answers.
    """
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        text, spans = joined(
            (paragraph["context"] for paragraph in article["paragraphs"]), "\n\n"
        )
        questions = []
        for (start, _), paragraph in zip(spans, article["paragraphs"], strict=True):
            for asked in paragraph["qas"]:
                answers = [
                    (start + each["answer_start"], each["text"])
                    for each in asked["answers"]
                ]
                questions.append(
                    {
                        "qid": asked["id"],
                        "question": asked["question"].strip(),
                        "answers": list(dict.fromkeys(words for _, words in answers)),
                        "evidence": [
                            (first, first + len(words)) for first, words in answers[:1]
                        ],
                        "answerable": bool(answers),
                    }
                )
        yield line("squad", article["title"], text, questions)


def timeqa(file: Path) -> Iterator[Line]:
    """Convert the articles of TimeQA's human questions.

    Tokens are joined, and the positions of answers adjusted.
    """
    pages: dict[
        str, list[Line]
    ] = {}  # an article has a record for each relation that is asked about
    for record in json.loads(file.read_text(encoding="utf-8")):
        pages.setdefault(record["link"], []).append(record)
    for link, records in pages.items():
        paragraphs = records[0]["paras"]
        text, spans = joined((APART.sub("", each) for each in paragraphs), "\n\n")
        questions = []
        for record in records:
            for number, (question, answers) in enumerate(record["questions"]):
                found = [each for each in answers if each.get("answer")]
                evidence = {
                    tuple(
                        spans[each["para"]][0]
                        + closed(paragraphs[each["para"]], each[end])
                        for end in ("from", "end")
                    )
                    for each in found
                }
                questions.append(
                    {
                        "qid": f"{record['index']}#{number}",
                        "question": question,
                        "answers": [APART.sub("", each["answer"]) for each in found],
                        "evidence": sorted(evidence),
                        "answerable": bool(found),
                    }
                )
        yield line("timeqa_human", link.removeprefix("/"), text, questions)


APART = re.compile(r" (?=[.,;:!?%)\]](?: |$))|(?<=[(\[]) ")
"""The spaces before and after punctuation that TimeQA's tokens add and its articles
do not have."""


def closed(paragraph: str, place: int) -> int:
    """Return the position in a paragraph once these spaces are removed."""
    return place - sum(gap.start() < place for gap in APART.finditer(paragraph))


def fairytaleqa(folder: Path) -> Iterator[Line]:
    """Convert stories of FairytaleQA from a split's questions.

    Evidence is the sections that a question names.
    """
    for path in sorted(folder.glob("*-questions.csv")):
        name = path.name.removesuffix("-questions.csv")
        sections = table(
            folder.parents[1] / "section-stories" / folder.name / f"{name}-story.csv"
        )
        text, spans = joined((each["text"].strip() for each in sections), "\n\n")
        place = {
            each["section"]: span for each, span in zip(sections, spans, strict=True)
        }
        questions = [
            {
                "qid": f"{name}#{number}",
                "question": each["question"],
                "answers": [
                    each[f"answer{n}"] for n in range(1, 7) if each[f"answer{n}"]
                ],
                "evidence": sorted(
                    place[part.strip()] for part in each["cor_section"].split(",")
                ),
            }
            for number, each in enumerate(table(path))
        ]
        yield line("fairytaleqa", name, text, questions)


def evidence_inference(split: Path) -> Iterator[Line]:
    """Convert trial papers of Evidence Inference from a split's ids.

    Keep only what both annotators hold valid.
    """
    folder = split.parent.parent
    prompts = {each["PromptID"]: each for each in table(folder / "prompts_merged.csv")}
    marked: dict[str, list[Line]] = {}
    for each in table(folder / "v2_annotations.csv"):
        if each["Valid Label"] == each["Valid Reasoning"] == "True":
            marked.setdefault(each["PMCID"], []).append(each)
    for paper in split.read_text(encoding="utf-8").split():
        text = (folder / "txt_files" / f"PMC{paper}.txt").read_text(encoding="utf-8")
        questions: dict[str, Line] = {}
        for each in marked.get(paper, []):
            prompt, (start, end) = (
                prompts[each["PromptID"]],
                (int(each[f"Evidence {w}"]) for w in ("Start", "End")),
            )
            quoted = text[max(start, 0) : end]
            if start < 0 or quoted.split() != each["Annotations"].split():
                continue  # some of the authors' offsets are wrong
            span = (
                start + len(quoted) - len(quoted.lstrip()),
                start + len(quoted.rstrip()),
            )
            own = questions.setdefault(
                each["PromptID"],
                {
                    "qid": each["PromptID"],
                    "question": f"With respect to {prompt['Outcome'].strip()}, what is "
                    "the reported difference between patients receiving "
                    f"{prompt['Intervention'].strip()} and those receiving "
                    f"{prompt['Comparator'].strip()}?",
                    "answers": [each["Label"]],
                    "evidence": [],
                },
            )
            own["evidence"] = sorted({*own["evidence"], span})
        if questions:
            yield line(
                "evidence_inference", f"PMC{paper}", text, list(questions.values())
            )


def quotesum(file: Path) -> Iterator[Line]:
    """Convert the passages of each QuoteSum question.

    Evidence is what people's summaries quote: "[ 2 words ]".
    """
    summaries: dict[str, list[Line]] = {}
    for row in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(row)
        summaries.setdefault(record["qid"], []).append(record)
    for name, records in summaries.items():
        numbers = [n for n in range(1, 9) if records[0][f"source{n}"]]
        text, spans = joined(
            (f"{records[0][f'title{n}']}\n{records[0][f'source{n}']}" for n in numbers),
            "\n\n",
        )
        evidence: set[Span] = set()
        for record in records:
            for number, words in re.findall(r"\[ (\d) (.+?) \]", record["summary"]):
                first, last = (
                    spans[numbers.index(int(number))]
                    if int(number) in numbers
                    else (0, 0)
                )
                start = text.find(
                    words,
                    min(first + len(records[0][f"title{number}"]) + 1, last),
                    last,
                )
                evidence |= {(start, start + len(words))} if start >= 0 else set()
        asked = {
            "qid": name,
            "question": records[0]["question"],
            "evidence": sorted(evidence),
        }
        yield line("quotesum", name, text, [asked])


def tatqa(file: Path) -> Iterator[Line]:
    """Convert TAT-QA's notes and table, "a | b".

    Evidence is the authors' mapping to characters and cells.
    """
    for record in json.loads(file.read_text(encoding="utf-8")):
        notes = sorted(record["paragraphs"], key=lambda note: note["order"])
        rows = record["table"]["table"]
        parts, between = [note["text"] for note in notes], "\n\n"
        text, spans = joined(
            [*parts, "\n".join(" | ".join(row) for row in rows)], between
        )
        start, cells = spans[-1][0], {}
        for r, row in enumerate(rows):
            for c, cell in enumerate(row):
                cells[r, c] = (start, start + len(cell))
                start += len(cell) + (3 if c + 1 < len(row) else 1)
        place = {
            str(note["order"]): first
            for note, (first, _) in zip(notes, spans, strict=False)
        }
        questions = []
        for asked in record["questions"]:
            mapping = asked.get("mapping", {})
            evidence = {cells[r, c] for r, c in mapping.get("table", [])} | {
                (place[order] + first, place[order] + last)
                for order, ranges in mapping.get("paragraph", {}).items()
                for first, last in ranges
            }
            questions.append(
                {
                    "qid": asked["uid"],
                    "question": asked["question"],
                    "evidence": sorted(evidence),
                }
            )
        yield line("tatqa", record["table"]["uid"], text, questions)


def medquad(folder: Path) -> Iterator[Line]:
    """Convert each topic of MedQuAD that has answers to a page.

    The evidence for a question is its answer.
    """
    for path in sorted(folder.glob("*_QA*/*.xml")):
        page = ElementTree.parse(path).getroot()
        pairs = []
        for pair in page.iter("QAPair"):
            lines = (
                " ".join(each.split())
                for each in pair.findtext("Answer", "").splitlines()
            )
            if answer := "\n".join(filter(None, lines)):
                pairs.append(
                    (pair.get("pid"), pair.findtext("Question", "").strip(), answer)
                )
        text, spans = joined(
            [page.findtext("Focus", "").strip(), *(answer for *_, answer in pairs)],
            "\n\n",
        )
        questions = [
            {
                "qid": f"{page.get('id')}#{number}",
                "question": question,
                "evidence": [span],
            }
            for (number, question, _), span in zip(pairs, spans[1:], strict=True)
        ]
        if questions:
            yield line("medquad", f"{path.parent.name}/{path.name}", text, questions)


def table(file: Path) -> list[Line]:
    """Return the rows of a CSV file as dictionaries by column name."""
    with file.open(encoding="utf-8-sig", newline="") as rows:
        return list(csv.DictReader(rows))


def line(source: str, name: str, text: str, questions: list[Line]) -> Line:
    """Return a line of a question file."""
    return {
        "doc_id": f"{source.removesuffix('_sample').removesuffix('_human')}/{name}",
        "source": source,
        "text": text,
        "questions": questions,
    }


def digest_of(lines: Iterable[Line]) -> str:
    """Return the SHA-256 of the ids, texts, questions and evidence.

    Order and other keys do not matter.
    """
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
    each.__name__: each
    for each in (
        qmsum,
        hotpotqa,
        limit,
        squad,
        timeqa,
        fairytaleqa,
        evidence_inference,
        quotesum,
        tatqa,
        medquad,
    )
}


def main() -> None:
    """Convert the source, write the question file and print its digest."""
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
    print(
        f"{sum(len(each['questions']) for each in lines):,} questions on {len(lines):,}"
        " documents"
    )
    print(f"digest {digest_of(lines)}")


if __name__ == "__main__":
    main()
