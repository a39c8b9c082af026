"""The lexical channel: words, BM25, soft match and the counts of a collection."""
