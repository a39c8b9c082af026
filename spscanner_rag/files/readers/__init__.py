"""Readers, one module for each kind of file: bytes → text with its blocks and pages."""
