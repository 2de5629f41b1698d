"""Everything here is annotated with text, because of the next line."""

# The context here is generic at run time only.
# mypy: disable-error-code="type-arg, var-annotated"
from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING

from agentbench._signatures import PendingSignature, read_handler
from tests.parts.errors import raises

if TYPE_CHECKING:
    from elsewhere import WorkflowContext  # type: ignore[import-not-found]


def handler(func):
    return read_handler(func, context_type=Context, explicit=None)


class Context:
    __class_getitem__ = classmethod(GenericAlias)


class Early: ...


class Host:
    async def known(self, message: Early | None, ctx: Context[list[Early], str]) -> None: ...

    async def forward(self, message: Late, ctx: Context[Late | Host]) -> None: ...

    async def quoted(self, message: "Late", ctx: "Context[Late]") -> None: ...  # noqa: UP037  twice text

    async def hidden(self, message: int, ctx: WorkflowContext[str]) -> None: ...

    seen = handler(known)
    pending = handler(forward)
    pending_quoted = handler(quoted)


class Late: ...


def test_known_types_are_known_at_once():
    assert Host.seen.message_type == Early | None
    assert (Host.seen.send_types, Host.seen.yield_types) == ((list[Early],), (str,))


def test_types_further_down_are_known_when_the_first_executor_is_constructed():
    assert isinstance(Host.pending, PendingSignature)
    signature = Host.pending.resolve(Host)
    assert (signature.message_type, signature.send_types) == (Late, (Late, Host))
    assert Host.pending_quoted.resolve(Host).send_types == (Late,)


def test_a_context_that_is_imported_for_type_checkers_only_is_known_by_its_name():
    workflow_context = type("WorkflowContext", (Context,), {})
    signature = read_handler(Host.hidden, context_type=workflow_context).resolve(Host)
    assert (signature.message_type, signature.send_types) == (int, (str,))


def test_a_context_under_an_unknown_name_is_an_error():
    with raises(ValueError, "'WorkflowContext'"):
        handler(Host.hidden)
