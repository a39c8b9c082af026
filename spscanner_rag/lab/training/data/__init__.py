"""Training data: files, the questions drawn from them, a teacher's scores, and the examples made of these."""
