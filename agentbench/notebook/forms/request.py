"""The forms of requests: one for each request event, so that typed texts are still there when a cell runs again."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.notebook.forms.content import FormContent, content_for_request
from agentbench.notebook.forms.model import FormModel
from agentbench.notebook.forms.questions import Request, read_request

__all__ = ["RequestForm", "carry_over", "form_of_request"]


@dataclass(frozen=True)
class RequestForm:
    """The texts, fields and buttons of a request, with what was typed and the answer."""

    content: FormContent
    model: FormModel


# By event: ids of requests repeat where ids count from one. A form lives as long as its event.
_FORMS: "WeakKeyDictionary[Request, RequestForm]" = WeakKeyDictionary()


def form_of_request(request: Request) -> RequestForm:
    """Return the form of a request event; the same one at each call."""
    found = _FORMS.get(request)
    if found is None:
        found = _FORMS[request] = RequestForm(*content_for_request(read_request(request)))
    return found


def carry_over(before: Request, model: FormModel, request: Request) -> bool:
    """Return whether the form of one request event is that of another one too.

    A restored run emits its open requests as new events. An event with the same id and content takes over the form,
    with the typed texts, as long as that was not answered.
    """
    known = _FORMS.get(request)
    if known is not None:
        return known.model is model
    if not model.live or not Comparison().same(_facts(before), _facts(request)):
        return False
    _FORMS[request] = _FORMS[before]
    return True


def _facts(request: Request) -> tuple[object, ...]:
    return request.request_id, request.source_executor_id, request.response_type, request.data
