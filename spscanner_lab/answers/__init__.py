"""A language model's answers to questions, and how they are judged."""
