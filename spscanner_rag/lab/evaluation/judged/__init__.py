"""Corpora whose documents were judged relevant or not for each query: BEIR's folders, TREC's files."""
