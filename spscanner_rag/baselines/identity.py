"""What identifies the models of a retriever, so that a run resumes only with the same ones."""

import hashlib

from spscanner_rag.baselines.remote_scanner import RemoteScanner
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer


def identity_of(scorer: Scorer) -> dict[str, str]:
    """What identifies the scanners in a retriever, local or behind a server.

    Empty if it has none.
    """
    if isinstance(scorer, Scanner):
        tokenizer = (
            scorer.checkpoint.tokenizer.to_str()
        )  # some published checkpoints have no tokenizer file
        own = hashlib.sha256(tokenizer.encode()).hexdigest()
        return {"checkpoint": scorer.checkpoint.fingerprint(), "tokenizer": own}
    if isinstance(scorer, RemoteScanner):
        served = scorer._model  # also fails here if the server cannot be reached
        return {"checkpoint": served["sha256"], "dtype": served["dtype"]}
    parts = enumerate(scorer.scorers, 1)
    return {
        f"{number}. {key}": value
        for number, part in parts
        for key, value in identity_of(part).items()
    }
