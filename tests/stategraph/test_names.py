"""Names and import paths of state graphs, and the pages of the seed with only their import lines changed."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
from pydantic import Field

import agentbench
import agentbench.exceptions
import agentbench.stategraph


@pytest.mark.parametrize("name", sorted({*agentbench.stategraph.__all__} & {*agentbench.__all__}))
def test_a_name_is_the_same_object_at_the_root(name: str) -> None:
    assert getattr(agentbench, name) is getattr(agentbench.stategraph, name)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "stategraph.core.state",
            "AgentState AnnotationRef ExecutionState ExecutionStatus Message StreamChunk StreamEvent TokenUsages",
        ),
        ("stategraph.core.state.stream_emitter", "StreamEmitter"),
        ("stategraph.core.state.reducers", "add_messages append_items replace_messages replace_value"),
        ("stategraph.core.graph", "StateGraph CompiledGraph ToolNode"),
        (
            "stategraph.core.exceptions",
            "GraphError NodeError GraphRecursionError NodeTimeoutError GraphStopRequested StaleStateError StorageError "
            "TransientStorageError SerializationError ResourceNotFoundError SchemaVersionError",
        ),
        ("stategraph.prebuilt.tools", "create_handoff_tool is_handoff_tool"),
        ("stategraph.storage.checkpointer", "InMemoryCheckpointer SqliteCheckpointer"),
        ("stategraph.utils.decorators", "get_tool_metadata has_tool_decorator tool"),
        (
            "stategraph.utils",
            "START END Command ResponseGranularity interrupt GraphInterrupt pending_interrupt get_tool_metadata tool",
        ),
        ("stategraph.reducers", "add_messages upsert_messages Reducer Overwrite RemoveMessage remove_tool_messages"),
        ("stategraph.errors", "GraphError ConcurrentUpdateError ThreadBusyError"),
        ("stategraph.snapshots", "StateSnapshot"),
        ("stategraph.compiled", "CompiledGraph"),
        ("stategraph.toolnode", "ToolNode ToolResult"),
    ],
)
def test_the_paths_of_the_other_dialect_lead_to_the_same_objects(module: str, names: str) -> None:
    found = importlib.import_module(f"agentbench.{module}")

    for name in names.split():
        assert getattr(found, name) is getattr(agentbench.stategraph, name)


def test_errors_are_those_of_the_one_tree() -> None:
    from agentbench.stategraph import errors

    assert all(getattr(errors, name) is getattr(agentbench.exceptions, name) for name in errors.__all__)


def test_the_package_needs_neither_pandas_nor_ipython_nor_the_sdk_of_a_model() -> None:
    code = """
import sys
for name in ("pandas", "IPython", "ipywidgets", "openai", "graphviz"):
    sys.modules[name] = None
from agentbench.stategraph import StateGraph
app = StateGraph().add_node("say", lambda state: "hello").set_entry_point("say").compile()
result = app.invoke("hi", {"thread_id": "t"})
print(result["messages"][-1].text, app.get_state_history({"thread_id": "t"}).to_frame()[-1]["status"])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.split() == ["hello", "completed"]


def test_blocks_are_contents_of_messages() -> None:
    from agentbench.stategraph.core.state import Message, TextBlock, ToolCallBlock, ToolResultBlock

    said = Message(role="assistant", content=[TextBlock("Look: "), ToolCallBlock(id="c1", name="look", args={"at": 1})])
    result = ToolResultBlock(call_id="c1", output="dark", is_error=True)

    assert said.text == "Look: "
    assert said.tools_calls == [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    ]
    assert (result.call_id, result.result, result.additional_properties["status"]) == ("c1", "dark", "failed")
    assert ToolResultBlock("c1", "light").additional_properties == {"is_error": False, "status": "completed"}


class TestSeedPage:
    """The samples of the page on state."""

    async def test_an_order_is_processed_and_its_state_read(self) -> None:
        from agentbench.stategraph.core.graph import StateGraph
        from agentbench.stategraph.core.state import AgentState, Message
        from agentbench.stategraph.utils import ResponseGranularity

        class OrderState(AgentState):
            """State for an order-processing agent."""

            order_id: str | None = None
            cart: list[dict] = Field(default_factory=list)  # type: ignore[type-arg]
            confirmed: bool = False
            discount_code: str | None = None

        seen: list[OrderState] = []

        def process_order(state: OrderState, config: dict) -> list:  # type: ignore[type-arg]
            seen.append(state)
            assert state.is_running()
            assert not state.is_interrupted()
            assert not state.is_stopped_requested()
            return [Message.text_message("Order confirmed!", role="assistant")]

        def summarise_node(state: AgentState, config: dict) -> dict:  # type: ignore[type-arg]
            return {"context_summary": f"{len(state.context)} messages"}

        def checkout_node(state: OrderState, config: dict) -> dict:  # type: ignore[type-arg]
            return {"context": [Message.text_message("Order placed!", role="assistant")], "confirmed": True}

        def nothing(state: OrderState) -> None:
            return None

        graph = StateGraph(OrderState())
        graph.add_node("process", process_order).add_node("summarise", summarise_node)
        graph.add_node("checkout", checkout_node).add_node("nothing", nothing)
        graph.set_entry_point("process").add_edge("process", "summarise").add_edge("summarise", "checkout")
        app = graph.add_edge("checkout", "nothing").set_finish_point("nothing").compile()

        initial = OrderState(order_id="ORD-001", cart=[{"sku": "ABC", "qty": 1}])
        asked = {"messages": [Message.text_message("Process my order")]}
        as_written = app.invoke(asked, config={"thread_id": "order-session-1"})
        result = await app.ainvoke(
            {**asked, "state": initial}, config={"thread_id": "t1"}, response_granularity=ResponseGranularity.FULL
        )
        state: OrderState = result["state"]

        assert [message.text for message in as_written["messages"]][1:] == ["Order confirmed!", "Order placed!"]
        assert (state.confirmed, state.order_id, state.context_summary) == (True, "ORD-001", "2 messages")
        assert [each.order_id for each in seen] == [None, "ORD-001"]

    def test_a_state_is_a_model_with_the_fields_of_the_page(self) -> None:
        from typing import Annotated

        from pydantic import BaseModel

        from agentbench.stategraph.core.graph import StateGraph
        from agentbench.stategraph.core.state import AgentState, Message
        from agentbench.stategraph.core.state.reducers import append_items, replace_messages

        class Finding(BaseModel):
            id: str

        class AnalysisState(AgentState):
            findings: Annotated[list[Finding], append_items] = Field(default_factory=list)
            current_step: str = "init"

        class MyState(AgentState):
            context: Annotated[list[Message], replace_messages] = Field(default_factory=list)

        state = AgentState()
        found = StateGraph(AnalysisState()).add_node(
            "look", lambda s: {"findings": [Finding(id="1"), Finding(id="1")], "current_step": "looked"}
        )
        result = found.set_entry_point("look").compile().invoke("go", {"thread_id": "t"}, "full")
        replaced = StateGraph(MyState).add_node("say", lambda s: "only this").set_entry_point("say").compile()

        assert (state.context, state.context_summary, state.execution_meta.step) == ([], None, 0)
        assert [each.id for each in result["state"].findings] == ["1"]
        assert result["state"].current_step == "looked"
        assert [m.text for m in replaced.invoke("hi", {"thread_id": "t"}).state.context] == ["only this"]
