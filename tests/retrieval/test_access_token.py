import copy
import pickle

from spscanner_rag.retrieval.access_token import HiddenToken, split_token
from spscanner_rag.retrieval.shared_scanners import ScorerChoice

SECRET = "hf_not_to_be_shown"


def test_a_token_is_shown_nowhere() -> None:
    given = {"token": SECRET, "revision": "main"}
    options, token = split_token(given)
    assert options == {"revision": "main"}
    assert given == {"token": SECRET, "revision": "main"}
    assert token.value == SECRET
    choice = ScorerChoice("a", model_kwargs=options, token=token)
    for shown in (repr(token), str(token), f"{token}", repr(choice), str([choice]), choice.name):
        assert SECRET not in shown
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(choice, protocol)
        assert SECRET.encode() not in pickled
        assert pickle.loads(pickled).token.value is None
    assert copy.copy(token) is copy.deepcopy(token) is token
    assert copy.deepcopy(choice).token.value == SECRET
    assert not hasattr(token, "__dict__")


def test_no_token() -> None:
    assert split_token({})[1].value is None
    assert repr(HiddenToken()) == "HiddenToken()"
