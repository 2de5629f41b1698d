"""The forms of requests, kept by the event that asks: what was typed is there when a cell runs again."""

from collections import OrderedDict
from dataclasses import dataclass

from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.notebook.form_content import FormContent, content_for_request
from agentbench.notebook.form_model import FormModel
from agentbench.notebook.request_reading import Request, read_request

__all__ = ["Asked", "asked", "asks_the_same"]

_REMEMBERED = 128


@dataclass(frozen=True)
class Asked:
    """A request and its form.

    Attributes:
        request: The event. It is kept, so its identity is not given away.
        content: What stands on the form.
        model: What was typed and answered.
    """

    request: Request
    content: FormContent
    model: FormModel


# By identity: ids of requests repeat where ids count from one.
_known: "OrderedDict[int, Asked]" = OrderedDict()


def asked(request: Request) -> Asked:
    """The form of an event; the same one at each call."""
    known = _known.get(id(request))
    return _keep(Asked(request, *content_for_request(read_request(request)))) if known is None else known


def asks_the_same(before: Asked, request: Request) -> bool:
    """Whether a form is that of an event, or goes on as that.

    A run that is restored tells its open requests by new events. To one that asks the same, for the same id, belongs
    what was typed for the one before, as long as that was not answered.
    """
    if request is before.request:
        return True
    known = _known.get(id(request))
    if known is not None:
        return known.model is before.model
    if not before.model.live or not _are_same(before.request, request):
        return False
    _keep(Asked(request, before.content, before.model))
    return True


def _are_same(one: Request, other: Request) -> bool:
    def facts(request: Request) -> tuple[object, ...]:
        return request.request_id, request.source_executor_id, request.response_type, request.data

    return Comparison().same(facts(one), facts(other))


def _keep(form: Asked) -> Asked:
    _known[id(form.request)] = form
    while len(_known) > _REMEMBERED:
        _known.popitem(last=False)
    return form
