"""Readers, one module for each kind of file: bytes → text, with what stands where in it."""
