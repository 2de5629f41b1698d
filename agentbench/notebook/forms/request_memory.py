"""The forms of requests, stored by request event, so that typed texts are still there when a cell runs again."""

from collections import OrderedDict
from dataclasses import dataclass

from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.notebook.forms.content import FormContent, content_for_request
from agentbench.notebook.forms.model import FormModel
from agentbench.notebook.history.questions import Request, read_request

__all__ = ["RequestForm", "form_of_request", "is_same_request"]

_REMEMBERED = 128


@dataclass(frozen=True)
class RequestForm:
    """A request and its form.

    Attributes:
        request: The event; the reference keeps its `id()` from being used again.
        content: Texts, fields and buttons.
        model: Typed texts and the answer.
    """

    request: Request
    content: FormContent
    model: FormModel


# By identity: ids of requests repeat where ids count from one.
_known: "OrderedDict[int, RequestForm]" = OrderedDict()


def form_of_request(request: Request) -> RequestForm:
    """Return the form of a request event; the same one at each call."""
    known = _known.get(id(request))
    return _store(RequestForm(request, *content_for_request(read_request(request)))) if known is None else known


def is_same_request(before: RequestForm, request: Request) -> bool:
    """Whether a form belongs to a request event, or is carried over to it.

    A restored run emits its open requests as new events. An event with the same id and content takes over the form,
    with the typed texts, as long as that was not answered.
    """
    if request is before.request:
        return True
    known = _known.get(id(request))
    if known is not None:
        return known.model is before.model
    if not before.model.live or not _are_same(before.request, request):
        return False
    _store(RequestForm(request, before.content, before.model))
    return True


def _are_same(one: Request, other: Request) -> bool:
    def facts(request: Request) -> tuple[object, ...]:
        return request.request_id, request.source_executor_id, request.response_type, request.data

    return Comparison().same(facts(one), facts(other))


def _store(form: RequestForm) -> RequestForm:
    _known[id(form.request)] = form
    while len(_known) > _REMEMBERED:
        _known.popitem(last=False)
    return form
