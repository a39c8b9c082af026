"""Measurements of speed and memory: `python -m spscanner_lab.benchmarks --help`."""
