"""Batch runs: rows of files are scanned into the parts of a folder."""
