"""The rows of one run of `python -m benchmarks speed`, by their subject, so that targets find them."""

from dataclasses import dataclass, field

from benchmarks.clock import Row


@dataclass
class SpeedResults:
    """Rows, in the order of their measurement."""

    device: str
    limits: dict[str, object] = field(default_factory=dict)
    readings: dict[tuple[str, str, str, int], Row] = field(default_factory=dict)  # size, dtype, kind, tokens
    scanner_rows: dict[tuple[str, str], Row] = field(default_factory=dict)  # size, what was done

    def by_name(self) -> dict[str, object]:
        """All rows by the names that the report gives them."""
        rows: dict[str, object] = dict(self.limits)
        for (size, dtype, kind, tokens), row in self.readings.items():
            rows[f"{size}, {dtype}, {kind}, {tokens:,} tokens"] = row
        for (size, what), row in self.scanner_rows.items():
            rows[f"{size}, {what}"] = row
        return rows
