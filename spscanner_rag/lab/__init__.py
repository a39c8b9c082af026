"""The workshop: evaluation, answers, training and synthesis."""
