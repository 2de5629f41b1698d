"""A class that is defined again, as when a cell is run again, leaves nothing of the old one behind."""

from __future__ import annotations

import dataclasses
import enum
import gc
import typing
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from agentbench import (
    Agent,
    ContextProvider,
    EchoChatClient,
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    tool,
)
from agentbench.stategraph import AgentState, StateGraph


async def use_agent_state() -> type:
    class Count(AgentState):
        n: int = 0

    await use_in_a_graph(Count, Count(n=1))
    return Count


async def use_dataclass_state() -> type:
    @dataclasses.dataclass
    class Count:
        n: int = 0

    await use_in_a_graph(Count, Count(n=1))
    return Count


async def use_typed_dict_state() -> type:
    class Count(typing.TypedDict):
        n: int

    await use_in_a_graph(Count, {"n": 1})
    return Count


async def use_model_state() -> type:
    class Count(BaseModel):
        n: int = 0

    await use_in_a_graph(Count, Count(n=1))
    return Count


async def use_in_a_graph(cls: Any, first: Any) -> None:
    async def two(state: Any) -> dict[str, int]:
        return {"n": 2}

    app = StateGraph(cls).add_node("a", two).set_entry_point("a").compile()
    await app.ainvoke(first)
    await app.ainvoke(first, {"thread_id": "t"})
    await app.aget_state({"thread_id": "t"})


async def use_message() -> type:
    @dataclasses.dataclass
    class Draft:
        text: str

    await use_in_a_workflow(Draft, Draft("x"))
    return Draft


async def use_message_in_generic_types() -> type:
    @dataclasses.dataclass
    class Draft:
        text: str

    await use_in_a_workflow(list[Draft] | dict[str, Draft], [Draft("x")])
    return Draft


async def use_enum() -> type:
    class Mood(enum.Enum):
        GOOD = 1

    await use_in_a_workflow(Mood, Mood.GOOD)
    return Mood


async def use_in_a_workflow(type_: Any, message: Any) -> None:
    class Pass(Executor):
        @handler(input=type_, output=type_, workflow_output=type_)
        async def take(self, data, ctx):
            await ctx.send_message(data)

    class End(Executor):
        @handler(input=type_, workflow_output=type_)
        async def take(self, data, ctx):
            await ctx.yield_output(data)

    first, last = Pass(id="first"), End(id="last")
    workflow = WorkflowBuilder(start_executor=first, check_types="error").add_edge(first, last).build()
    assert (await workflow.run(message)).get_outputs() == [message]


class TakesAll(Executor):
    """An executor of a class that stays."""

    @handler
    async def take(self, data: object, ctx: WorkflowContext[Any, Any]) -> None:
        await ctx.yield_output(data)


async def use_message_of_a_lasting_executor() -> type:
    class Note:
        pass

    await WorkflowBuilder(start_executor=TakesAll(id="all")).build().run(Note())
    return Note


async def use_tool_and_provider() -> type:
    class Place(BaseModel):
        name: str

    @tool
    def look(place: Place) -> str:
        """Look at a place."""
        return place.name

    class Facts(ContextProvider):
        async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
            self.place = Place(name="here")

    await Agent(EchoChatClient(), tools=[look], context_providers=[Facts("facts")]).run("Hello")
    return Place


USES = [
    use_agent_state, use_dataclass_state, use_typed_dict_state, use_model_state, use_message,
    use_message_in_generic_types, use_enum, use_message_of_a_lasting_executor, use_tool_and_provider,
]  # fmt: skip


@pytest.mark.parametrize("use", USES)
async def test_a_class_that_nothing_uses_any_more_is_freed(use: Callable[[], Any]) -> None:
    used = weakref.ref(await use())
    gc.collect()
    assert used() is None
