"""A text becomes units, and units become token ids. No torch, no file."""
