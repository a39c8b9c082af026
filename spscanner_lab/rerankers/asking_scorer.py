"""How a retriever asks a language model."""

from spscanner_lab.llm.asking import Asker, NoReplyError
from spscanner_lab.llm.budget import RunEndedError
from spscanner_lab.llm.language_models import LanguageModel


def reply_or_none(asker: Asker, model: LanguageModel, prompt: str) -> str | None:
    """Return the reply to a prompt, or None if the model failed at every attempt.

    ``OSError`` if the provider refuses every request, or a limit is reached.
    """
    try:
        return asker.ask(model, prompt)
    except NoReplyError:
        return None
    except RunEndedError as error:
        raise OSError(f"{model.name} was asked nothing more: {error}") from error
