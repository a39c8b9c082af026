"""Refuse a commit whose subject is longer than 72 characters."""

import sys
from pathlib import Path

MOST_CHARACTERS = 72


def main() -> int:
    """Return 1 for a subject that is too long, and say so."""
    subject = Path(sys.argv[1]).read_text(encoding="utf-8").partition("\n")[0]
    if len(subject) <= MOST_CHARACTERS:
        return 0
    sys.stderr.write(
        f"subject: got {len(subject)} characters; expected at most {MOST_CHARACTERS}: "
        "say the rest in the message below it\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
