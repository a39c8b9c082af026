"""Questions made from plain text."""
