"""What is wrong with a checkpoint, on one line."""

from spscanner_rag.checkpoint.errors import CheckpointError


def test_a_message_is_one_short_line_whatever_a_file_holds() -> None:
    message = str(CheckpointError("tensor a\nb\x1b[31m\u202ec\ud800 has no place"))
    assert message == "tensor a\\x0ab\\x1b[31m\\u202ec\\ud800 has no place"
    long = str(CheckpointError(f"{'9' * 100_000}; expected less"))
    assert len(long) < 2100
    assert long.endswith("9; expected less")
