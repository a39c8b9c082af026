"""Readers, one module for each kind of file: bytes → text with blocks and pages."""
