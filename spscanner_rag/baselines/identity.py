"""What identifies a retriever's models: a run resumes only with the same ones."""

import hashlib

from spscanner_rag.baselines.remote_scanner import RemoteScanner
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer


def identity_of(scorer: Scorer) -> dict[str, str]:
    """What identifies the scanners in a retriever, local or behind a server.

    Empty if it has none.
    """
    if isinstance(scorer, Scanner):
        # Some published checkpoints have no tokenizer file.
        tokenizer = scorer.checkpoint.tokenizer.to_str()
        digest = hashlib.sha256(tokenizer.encode()).hexdigest()
        identity = {"checkpoint": scorer.checkpoint.fingerprint(), "tokenizer": digest}
        if scorer.read != "auto":
            identity["read"] = str(scorer.read)
        return identity
    if isinstance(scorer, RemoteScanner):
        model = scorer.served_model()  # fails here if the server cannot be reached
        identity = {"checkpoint": model["sha256"], "dtype": model["dtype"]}
        if scorer.read is not None:
            identity["read"] = str(scorer.read)
        return identity
    identity = {}
    for number, part in enumerate(scorer.scorers, 1):
        for key, value in identity_of(part).items():
            identity[f"{number}. {key}"] = value
    return identity
