"""What a run trains on: files, examples, questions drawn from them."""
