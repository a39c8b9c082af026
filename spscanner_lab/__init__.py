"""The workshop: evaluation, answers, training, synthesis and benchmarks.

`spscanner_rag` does not need it.
"""
