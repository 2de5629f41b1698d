"""Which kind a middleware is of."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from agentbench.agents.middleware.contexts import (
    AgentContext,
    AgentMiddleware,
    CallNext,
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    agent_middleware,
    chat_middleware,
    function_middleware,
)
from agentbench.agents.middleware.sorting import SortedMiddleware, sort_middleware
from agentbench.exceptions import MiddlewareException
from tests.ids import steady

if TYPE_CHECKING:
    import agentbench as ab
    from agentbench import ChatContext as Chat


class OnAgent(AgentMiddleware):
    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        await call_next()


class OnChat(ChatMiddleware):
    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        await call_next()


class OnFunction(FunctionMiddleware):
    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        await call_next()


async def by_annotation(context: ChatContext, call_next: CallNext) -> None: ...


@chat_middleware
async def by_decorator(context, call_next) -> None: ...


async def in_a_union(context: ChatContext | None, call_next: CallNext) -> None: ...


async def of_a_module_that_only_a_type_checker_knows(context: ab.ChatContext, call_next: CallNext) -> None: ...


class OwnContext(ChatContext):
    __slots__ = ()


async def of_a_subclass(context: OwnContext, call_next: CallNext) -> None: ...


@chat_middleware
async def takes_anything(*args: Any) -> None: ...


class CallableObject:
    async def __call__(self, context: ChatContext, call_next: CallNext) -> None: ...


class Methods:
    __hash__ = None  # type: ignore[assignment]

    async def method(self, context: ChatContext, call_next: CallNext) -> None: ...

    async def __call__(self, context: ChatContext, call_next: CallNext) -> None: ...


async def retrying(times: int, context: ChatContext, call_next: CallNext) -> None: ...


CHAT = [
    by_annotation,
    by_decorator,
    in_a_union,
    of_a_module_that_only_a_type_checker_knows,
    of_a_subclass,
    takes_anything,
    CallableObject(),
    Methods(),
    Methods().method,
    functools.partial(retrying, 3),
]


@pytest.mark.parametrize("given", CHAT, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_chat_middleware_is_known_however_it_is_written(given: Callable[..., Any]) -> None:
    assert sort_middleware(given) == ((), (given,), ())
    assert sort_middleware(given) == ((), (given,), ())  # also when it was seen before


def test_each_class_is_of_its_kind_and_called_by_its_process() -> None:
    agent, chat, function = OnAgent(), OnChat(), OnFunction()
    found = sort_middleware([function, agent, chat])
    assert found == SortedMiddleware((agent.process,), (chat.process,), (function.process,))


def test_a_name_that_only_a_type_checker_knows_needs_the_decorator_when_it_is_no_context_name() -> None:
    async def renamed(context: Chat, call_next: CallNext) -> None: ...

    with pytest.raises(MiddlewareException):
        sort_middleware(renamed)
    assert sort_middleware(chat_middleware(renamed)).chat == (renamed,)


def test_each_kind_is_in_order_and_nested_lists_are_flattened() -> None:
    async def second(context: ChatContext, call_next: CallNext) -> None: ...

    third = OnChat()
    found = sort_middleware(by_annotation, None, [[second], (third,)], [by_annotation])
    assert found.chat == (by_annotation, second, third.process, by_annotation)


def test_a_decorator_chooses_between_the_contexts_of_a_union() -> None:
    @function_middleware
    async def chosen(context: ChatContext | FunctionInvocationContext, call_next: CallNext) -> None: ...

    assert sort_middleware(chosen).function == (chosen,)


def refused(given: object) -> str:
    with pytest.raises(MiddlewareException) as caught:
        sort_middleware(given)
    return str(caught.value)


def test_a_function_without_decorator_and_annotation_is_refused() -> None:
    async def unknown(context, call_next) -> None: ...

    assert "unknown has no kind. Expected" in refused(unknown)
    assert "@chat_middleware" in refused(unknown)


def test_a_function_of_fewer_than_two_parameters_is_refused() -> None:
    async def short(context: ChatContext) -> None: ...

    assert "short cannot be called with two arguments: its parameters are (context: " in refused(short)


def test_a_decorator_that_contradicts_the_annotation_is_refused() -> None:
    @agent_middleware
    async def torn(context: ChatContext, call_next: CallNext) -> None: ...

    assert "torn is decorated as agent middleware, but its first parameter is the context of chat" in refused(torn)


def test_two_decorators_that_contradict_each_other_are_refused_at_once() -> None:
    with pytest.raises(MiddlewareException):

        @chat_middleware
        @agent_middleware
        async def torn(context: Any, call_next: CallNext) -> None: ...


def test_a_function_of_two_contexts_is_refused() -> None:
    async def both(context: ChatContext | AgentContext, call_next: CallNext) -> None: ...

    assert "both takes several contexts, so its kind is unclear" in refused(both)


def test_a_class_instead_of_an_instance_is_refused_with_a_hint() -> None:
    assert "OnChat is a class. Expected an instance: OnChat() instead of OnChat." in refused(OnChat)
    assert "Expected an instance" in refused([int])


@pytest.mark.parametrize("junk", ["text", object(), [None], [by_annotation, 0]], ids=steady)
def test_junk_is_refused(junk: object) -> None:
    assert "is not middleware" in refused(junk)
