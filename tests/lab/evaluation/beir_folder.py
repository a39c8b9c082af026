"""A small judged corpus in BEIR's layout."""

import json
from pathlib import Path

ANIMALS = "otter heron badger fox raven adder toad mole".split()


def folder_of(path: Path, **changes: object) -> Path:
    """A small folder in BEIR's layout; grades are nearness in the list of animals."""
    content = {
        "corpus": [
            {
                "_id": f"d{i}",
                "title": name,
                "text": f"The {name} lives here. It rests. {ANIMALS[i - 1]} too.",
            }
            for i, name in enumerate(ANIMALS)
        ],
        "queries": [
            {"_id": f"q{i}", "text": f"Where does the {name} live?"}
            for i, name in enumerate(ANIMALS)
        ],
        "qrels": (
            [(f"q{i}", f"d{i}", 2) for i in range(7)]
            + [(f"q{i}", f"d{i + 1}", 1) for i in range(6)]
            + [("q7", "d7", 0)]
        ),
        **changes,
    }
    (path / "qrels").mkdir(parents=True)
    for name in ("corpus", "queries"):
        (path / f"{name}.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in content[name])
        )
    lines = [
        "query-id\tcorpus-id\tscore",
        *("\t".join(map(str, line)) for line in content["qrels"]),
    ]
    (path / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    return path
