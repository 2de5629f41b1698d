"""Classes that declare a state: AgentState, pydantic models, dataclasses and TypedDict."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, NotRequired, Required, TypedDict

import pydantic.dataclasses
import pytest
from pydantic import BaseModel, Field, model_validator

from agentbench import FileCheckpointStorage, WorkflowBuilder
from agentbench.exceptions import (
    GraphError,
    InvalidEdit,
    InvalidUpdateError,
    StateValidationError,
)
from agentbench.stategraph import (
    END,
    START,
    AgentState,
    Command,
    ExecutionStatus,
    Message,
    Overwrite,
    RemoveMessage,
    Send,
    StateGraph,
    ToolNode,
    add_messages,
    interrupt,
    upsert_messages,
)
from tests.parts.errors import raises

THREAD = {"thread_id": "t"}


class Agent(AgentState):
    n: int = 0
    log: Annotated[list[str], operator.add] = []
    topic: str = ""


class Typed(TypedDict, total=False):
    n: Required[int]
    log: Annotated[list[str], operator.add]
    topic: str
    messages: Annotated[list[Message], add_messages]


@dataclass
class Data:
    n: int
    log: Annotated[list[str], operator.add] = field(default_factory=list)
    topic: str = "none"
    messages: Annotated[list[Message], add_messages] = field(default_factory=list)


class Model(BaseModel):
    n: int
    log: Annotated[list[str], operator.add] = []
    topic: str = "none"
    messages: Annotated[list[Message], add_messages] = []


ALL = pytest.mark.parametrize("cls", [Agent, Typed, Data, Model])
OTHERS = pytest.mark.parametrize("cls", [Typed, Data, Model])
INSTANCES = pytest.mark.parametrize("cls", [Data, Model])


def get(state: Any, name: str) -> Any:
    return state[name] if isinstance(state, dict) else getattr(state, name)


def fields_of(values: Any) -> dict[str, Any]:
    """The fields that all four classes have, of a snapshot or a result."""
    values = getattr(values, "state", values)
    found = values if isinstance(values, Mapping) else values.__dict__
    return {name: found[name] for name in ("n", "log")}


def up(state: Any) -> dict[str, Any]:
    return {"n": get(state, "n") + 1, "log": [f"up {get(state, 'n')}"]}


def until_three(state: Any) -> str:
    return "up" if get(state, "n") < 3 else "end"


def counting(cls: Any) -> StateGraph[Any]:
    graph = StateGraph(cls).add_node(up).add_node("end", lambda state: {"log": ["end"]}).add_edge(START, "up")
    return graph.add_conditional_edges("up", until_three, ["up", "end"]).add_edge("end", END)


def one(cls: Any, node: Any, **settings: Any) -> Any:
    return StateGraph(cls).add_node("node", node).add_edge(START, "node").compile(**settings)


# ---- what is the same with all classes -------------------------------------------------------------------------------


@ALL
def test_nodes_and_conditions_read_the_fields_and_reducers_merge_them(cls: Any):
    result = counting(cls).compile().invoke({"n": 1}, THREAD)
    assert fields_of(result) == {"n": 3, "log": ["up 1", "up 2", "end"]}
    assert (result.status, result.step) == (ExecutionStatus.COMPLETED, 3)
    assert result.changed["log"] == ["up", "end"]


@ALL
def test_a_thread_pauses_is_edited_and_continues(cls: Any):
    app = counting(cls).compile(interrupt_before=["end"])
    paused = app.invoke({"n": 1}, THREAD)
    assert paused.status is ExecutionStatus.INTERRUPTED
    assert app.get_state(THREAD).next == ("end",)

    app.update_state(THREAD, {"n": 9, "log": ["edited"]})
    assert fields_of(app.get_state(THREAD).values) == {"n": 9, "log": ["up 1", "up 2", "edited"]}
    assert fields_of(app.invoke(None, THREAD)) == {"n": 9, "log": ["up 1", "up 2", "edited", "end"]}
    assert fields_of(app.invoke({"n": 2}, THREAD))["log"][-2:] == ["end", "up 2"]


@ALL
def test_an_update_as_a_node_decides_what_follows_it(cls: Any):
    app = counting(cls).compile()
    app.invoke({"n": 3}, THREAD)
    app.update_state(THREAD, {"n": 1}, as_node="up")
    assert app.get_state(THREAD).next == ("up",)
    assert fields_of(app.invoke(None, THREAD))["n"] == 3


def test_an_update_as_a_node_that_does_not_exist_begins_no_thread():
    app = counting(Typed).compile()
    with pytest.raises(GraphError):
        app.update_state(THREAD, {"n": 1}, as_node="nobody")
    assert list(app.get_state_history(THREAD)) == []


@ALL
def test_the_history_has_the_fields_of_each_superstep_and_an_earlier_one_can_be_replayed(cls: Any):
    app = counting(cls).compile()
    app.invoke({"n": 1}, THREAD)
    history = app.get_state_history(THREAD)
    assert [get(each.values, "n") for each in history[:4]] == [3, 3, 2, 1]
    assert [each.next for each in history[4:]] == ([] if cls is Agent else [(START,)])
    assert "log[2]" in str(app.diff(history[0].config))
    assert all(each.invalid is None for each in history)

    fork = app.fork(history[2].config, values={"log": ["forked"]})
    assert fields_of(app.invoke(None, fork)) == {"n": 3, "log": ["up 1", "forked", "up 2", "end"]}


@ALL
def test_a_question_is_answered(cls: Any):
    app = one(cls, lambda state: {"n": interrupt("How many?", response_schema=int)})
    asked = app.invoke({"n": 1}, THREAD)
    assert [each.value for each in asked.interrupts] == ["How many?"]
    assert fields_of(app.invoke(Command(resume=5), THREAD))["n"] == 5


@ALL
def test_a_value_that_does_not_fit_names_field_node_and_value_and_nothing_is_merged(cls: Any):
    graph = StateGraph(cls).add_node("good", lambda state: {"log": ["good"]}).add_edge(START, "good")
    app = graph.add_node("bad", lambda state: {"n": "many"}).add_edge(START, "bad").compile()
    with pytest.raises(StateValidationError) as caught:
        app.invoke({"n": 1}, THREAD)
    assert (caught.value.node, caught.value.field) == ("bad", "n")
    assert "many" in str(caught.value)
    assert fields_of(app.get_state_history(THREAD)[0].values) == {"n": 1, "log": []}


@ALL
@pytest.mark.parametrize("update", [{"log": ["fits", 1]}, {"n": "many"}, {"log": 1}])
def test_a_wrong_update_names_node_and_field(cls: Any, update: dict[str, Any]):
    with pytest.raises(GraphError) as caught:
        one(cls, lambda state: update).invoke({"n": 1}, THREAD)
    assert (caught.value.node, caught.value.field) == ("node", next(iter(update)))


@ALL
@pytest.mark.parametrize("isolation", ["deep", "shallow"])
def test_changes_in_place_change_nothing_else_and_are_warned_of(cls: Any, isolation: Any):
    def spoil(state: Any) -> None:
        get(state, "log").append("spoilt")

    result = one(cls, spoil, isolation=isolation).invoke({"n": 1, "log": ["kept"]}, THREAD)
    assert fields_of(result) == {"n": 1, "log": ["kept"]}
    assert len(result.warnings) == 1
    assert "'log'" in result.warnings[0]


@ALL
@pytest.mark.parametrize("inner", [Agent, Typed, Data, Model])
def test_graphs_of_any_classes_nest_and_share_fields(cls: Any, inner: Any):
    graph = StateGraph(cls).add_node("inner", counting(inner).compile()).add_edge(START, "inner").add_node(up)
    result = graph.add_edge("inner", "up").compile().invoke({"n": 1, "log": ["begin"]}, THREAD)
    # An AgentState takes what the inner graph has added; any other state merges its result as that of a function.
    again = [] if cls is Agent else ["begin"]
    assert fields_of(result) == {"n": 4, "log": ["begin", *again, "up 1", "up 2", "end", "up 3"]}


@OTHERS
def test_keys_that_are_not_fields_are_ignored_with_a_warning(cls: Any):
    result = one(cls, lambda state: {"nn": 1, "log": ["kept"]}).invoke({"n": 1, "nm": 2}, THREAD)
    assert fields_of(result) == {"n": 1, "log": ["kept"]}
    assert ["'nm'" in result.warnings[0], "'nn'" in result.warnings[1]] == [True, True]


@ALL
def test_a_person_edits_a_field_in_the_stepper(cls: Any):
    panel = counting(cls).compile().stepper({"n": 1}, THREAD, breakpoints=["before:end"])
    panel.run()
    panel.edit("n", 7)
    with pytest.raises(InvalidEdit):
        panel.edit("n", "many")
    panel.run()
    assert panel.state["n"] == 7


@OTHERS
def test_a_person_gives_a_value_to_a_field_that_has_none(cls: Any):
    panel = counting(cls).compile().stepper({"n": 3}, THREAD, breakpoints=["before:end"])
    panel.run()
    assert "topic" not in panel.state
    with pytest.raises(InvalidEdit):
        panel.edit("topic", ["not text"])
    panel.edit("topic", "tea")
    with pytest.raises(InvalidEdit):
        panel.edit("topics", "tea")
    panel.run()
    assert panel.state["topic"] == "tea"


@ALL
def test_debug_mode_and_task_durability(cls: Any):
    app = counting(cls).compile(debug=True, durability="task")
    assert fields_of(app.invoke({"n": 2}, THREAD)) == {"n": 3, "log": ["up 2", "end"]}


PROGRAM = """
    import sys
    from agentbench import FileCheckpointStorage, WorkflowBuilder
    from agentbench.stategraph import Command
    sys.path.insert(0, sys.argv[2])
    from test_state_classes import Agent, Data, Model, Typed, asks_each, fields_of
    app = asks_each({name}).compile(FileCheckpointStorage(sys.argv[1]))
    answers = {{each.id: each.value for each in app.get_state({{"thread_id": "t"}}).interrupts}}
    print(sorted(fields_of(app.invoke(Command(resume=answers), {{"thread_id": "t"}}))["log"]))
"""


def ask(state: Any) -> dict[str, Any]:
    return {"log": [interrupt(get(state, "topic"))]}


def asks_each(cls: Any) -> StateGraph[Any]:
    graph = StateGraph(cls, name="asks").add_node(ask)
    return graph.add_conditional_edges(
        START, lambda state: [Send("ask", {"topic": "tea"}), Send("ask", {"topic": "salt"})], ["ask"]
    )


@ALL
def test_another_process_continues_a_thread(cls: Any, tmp_path: Path):
    asks_each(cls).compile(FileCheckpointStorage(tmp_path)).invoke({"n": 1}, THREAD)
    program = dedent(PROGRAM).format(name=cls.__name__)
    arguments = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path), str(Path(__file__).parent)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['salt', 'tea']", done.stderr


@ALL
def test_messages_means_the_conversation_where_no_field_has_that_name(cls: Any):
    said = Message("assistant", "Hello")
    app = one(cls, lambda state: Command(update={"messages": [said]}))
    result = app.invoke({"n": 1, "messages": "Hi"}, THREAD)
    app.update_state(THREAD, {"messages": [Message("user", "Bye")]})
    values: Any = app.get_state(THREAD).values
    talk = values.context if cls is Agent else values["messages"]
    assert [message.text for message in talk] == ["Hi", "Hello", "Bye"]
    assert [message.text for message in result.messages] == ["Hi", "Hello"]


@ALL
def test_text_messages_and_responses_of_a_node_go_to_the_conversation(cls: Any):
    result = one(cls, lambda state: "Hello").invoke({"n": 1}, THREAD)
    assert [message.text for message in result.messages] == ["Hello"]


# ---- what only the other classes have --------------------------------------------------------------------------------


@OTHERS
def test_a_result_is_the_dictionary_of_the_fields_that_have_a_value(cls: Any):
    app = one(cls, up)
    result = app.invoke({"n": 1}, THREAD)
    assert result == {"n": 2, "log": ["up 1"], "messages": []}
    assert result.state == app.get_state(THREAD).values == result
    assert app.get_state({"thread_id": "other"}).values == {}
    assert result.thread_id == "t"


@OTHERS
def test_after_a_question_the_result_has_the_open_interrupts(cls: Any):
    app = one(cls, lambda state: {"n": interrupt({"how": "many"})})
    asked = app.invoke({"n": 1}, THREAD)
    assert [(each.value, each.id) for each in asked["__interrupt__"]] == [({"how": "many"}, "1:node:1:0")]
    assert app.invoke({"resume": 2}, THREAD) == {"n": 2, "log": [], "messages": []}

    paused = one(cls, up, interrupt_before="*").invoke({"n": 1}, THREAD)
    assert paused == {"n": 1, "log": [], "messages": []}
    assert paused.status is ExecutionStatus.INTERRUPTED


@OTHERS
def test_an_error_of_a_node_is_raised_as_it_is_with_a_note(cls: Any):
    def fail(state: Any) -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return {"log": ["done"]}

    error = KeyError("x")
    failures: list[Exception] = [error, error]
    app = one(cls, fail)
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            app.invoke({"n": 1} if len(failures) == 2 else None, THREAD)
        assert caught.value is error
    (note,) = error.__notes__
    assert "'node'" in note
    assert "app.invoke(None, {'thread_id': 't'})" in note
    snapshot = app.get_state(THREAD)
    assert (snapshot.status, snapshot.next, snapshot.values["n"]) == (ExecutionStatus.ERROR, ("node",), 1)
    assert "KeyError" in (snapshot.tasks[0].error or "")
    assert app.invoke(None, THREAD)["log"] == ["done"]


@OTHERS
def test_of_several_errors_the_first_one_is_raised_and_tells_of_the_others(cls: Any):
    def fail(word: str) -> Any:
        def node(state: Any) -> None:
            raise ValueError(word)

        return node

    graph = StateGraph(cls).add_node("a", fail("one")).add_node("b", fail("other"))
    app = graph.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=False)
    with raises(ValueError, "one") as caught:
        app.invoke({"n": 1}, THREAD)
    notes = "\n".join(caught.value.__notes__)
    assert "ValueError('other')" in notes
    assert "invoke(None" not in notes  # nothing is saved


@OTHERS
async def test_a_stream_and_a_handle_raise_the_error_of_a_node_as_it_is(cls: Any):
    app = one(cls, lambda state: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        [chunk async for chunk in app.astream({"n": 1}, THREAD)]
    with pytest.raises(ZeroDivisionError):
        await (await app.astart({"n": 1}, {"thread_id": "handle"})).result()


def test_a_typed_dict_has_only_the_keys_that_have_a_value():
    seen = []
    app = one(Typed, lambda state: seen.append(dict(state)))
    assert app.invoke({}, THREAD) == {"log": [], "messages": []}
    app.invoke({"topic": "tea"}, THREAD)
    assert seen == [{"log": [], "messages": []}, {"log": [], "messages": [], "topic": "tea"}]


@INSTANCES
def test_nodes_see_defaults_that_are_not_in_results_until_they_are_written(cls: Any):
    seen = []

    def node(state: Any) -> dict[str, Any]:
        seen.append(state)
        return {"n": 2}

    app = one(cls, node)
    assert app.invoke({"n": 1}, THREAD) == {"n": 2, "log": [], "messages": []}
    assert isinstance(seen[0], cls)
    assert seen[0] == cls(n=1)


@INSTANCES
def test_an_instance_as_input_or_returned_writes_all_its_fields(cls: Any):
    app = one(cls, lambda state: cls(n=state.n + 1, log=["more"]))
    result = app.invoke(cls(n=1, log=["begin"], messages=[Message("user", "Hi", message_id="m")]), THREAD)
    assert result == {
        "n": 2,
        "log": ["begin", "more"],
        "topic": "none",
        "messages": [Message("user", "Hi", message_id="m")],
    }


@INSTANCES
def test_an_instance_is_the_state_that_threads_begin_with(cls: Any):
    template = cls(n=1, log=["begin"])
    app = StateGraph(template).add_node(up).add_edge(START, "up").compile()
    for thread_id in ("a", "b"):
        result = app.invoke({}, {"thread_id": thread_id})
        assert result == {"n": 2, "log": ["begin", "up 1"], "topic": "none", "messages": []}
    assert template.log == ["begin"]


@INSTANCES
def test_a_field_without_default_and_value_is_named(cls: Any):
    app = one(cls, up)
    with pytest.raises(StateValidationError) as caught:
        app.invoke({"topic": "tea"}, THREAD)
    assert (caught.value.node, caught.value.field) == ("node", "n")
    app.update_state(THREAD, {"n": 4})
    assert app.invoke(None, THREAD)["n"] == 5


def test_a_wrong_instance_as_input_is_refused():
    with pytest.raises(InvalidUpdateError):
        one(Data, up).invoke(Agent(), THREAD)


class Subject(TypedDict):
    subject: str


@OTHERS
def test_send_gives_a_node_exactly_its_argument(cls: Any):
    seen = []

    def joke(state: Subject) -> dict[str, Any]:
        seen.append(state)
        return {"log": [state["subject"]]}

    graph = StateGraph(cls).add_node(joke)
    graph.add_conditional_edges(START, lambda state: [Send("joke", {"subject": word}) for word in "ab"], ["joke"])
    result = graph.compile().invoke({"n": 1}, THREAD)
    assert (seen, result) == ([{"subject": "a"}, {"subject": "b"}], {"n": 1, "log": ["a", "b"], "messages": []})


def test_send_gives_a_node_fields_of_an_agent_state():
    graph = StateGraph(Agent).add_node("node", lambda state: {"log": [f"{state.n} {state.context_summary}"]})
    graph.add_conditional_edges(START, lambda state: Send("node", AgentState(context_summary="short")), ["node"])
    assert graph.compile().invoke({"n": 1}, THREAD).state.log == ["1 short"]


@dataclass
class Note:
    topic: str
    draft: str = "empty"


@OTHERS
def test_a_node_or_condition_annotated_with_another_class_gets_that_view(cls: Any):
    seen: list[Any] = []

    def plan(state: Any) -> dict[str, Any]:
        return {"topic": "tea", "draft": "leaves"}

    def write(note: Note) -> dict[str, Any]:
        seen.append(note)
        return {"log": [f"{note.topic}: {note.draft}"]}

    def follow(note: Note) -> str:
        seen.append(note)
        return END

    graph = StateGraph(cls).add_node(plan).add_node(write).add_edge(START, "plan").add_edge("plan", "write")
    app = graph.add_conditional_edges("write", follow, [END]).compile()
    result = app.invoke({"n": 1}, THREAD)
    assert seen == [Note("tea", "leaves")] * 2
    assert result == {"n": 1, "log": ["tea: leaves"], "topic": "tea", "messages": []}  # without private fields
    assert app.get_state(THREAD).values["draft"] == "leaves"


class Other(TypedDict):
    log: Annotated[list[str], operator.concat]


def test_a_view_cannot_name_another_reducer():
    def node(state: Other) -> None: ...

    with pytest.raises(GraphError) as caught:
        StateGraph(Typed).add_node(node)
    assert (caught.value.error_code, caught.value.field) == ("GRAPH_008", "log")


class Inner(TypedDict):
    text: str


class Kinds(TypedDict):
    maybe: NotRequired[int | None]
    total: Annotated[int, operator.add]
    seen: Annotated[set[str], operator.or_]
    found: Annotated[Mapping[str, int], operator.or_]
    late: Annotated[list[int] | None, operator.add]
    nested: Inner
    chat: Annotated[list[Message], upsert_messages]
    json: str


def test_a_field_with_a_reducer_has_a_value_from_the_start():
    empty: Any = {"total": 0, "seen": set(), "found": {}, "chat": []}
    assert one(Kinds, lambda state: None).invoke({}, THREAD) == empty
    app = one(Kinds, lambda state: {"total": 2, "late": [1], "json": "{}"})
    app.invoke({"total": 1}, THREAD)  # the first value of a field whose type makes none is taken as it is
    result = app.invoke({"maybe": None, "nested": {"text": "a"}}, THREAD)
    assert result == {**empty, "total": 5, "late": [1, 1], "json": "{}", "maybe": None, "nested": {"text": "a"}}


def test_the_conversation_may_have_any_name_and_its_reducer_decides():
    app = one(Kinds, lambda state: [RemoveMessage("1"), "Hello"])
    result = app.invoke({"messages": [Message("user", "Hi", message_id="1")]}, THREAD)
    assert [message.text for message in result["chat"]] == ["Hello"]
    again = app.invoke({"chat": Overwrite([])}, THREAD)
    assert [message.text for message in again["chat"]] == ["Hello"]


def test_a_state_without_a_conversation_takes_no_messages():
    with pytest.raises(InvalidUpdateError) as caught:
        one(Subject, lambda state: "Hello").invoke({"subject": "a"}, THREAD)
    assert caught.value.field == "messages"


def test_words_of_the_input_may_be_names_of_fields():
    class Words(TypedDict):
        resume: str
        state: str
        messages: Annotated[list[str], operator.add]

    given = {"resume": "cv", "state": "new", "messages": ["plain"]}
    assert one(Words, lambda state: {"messages": ["text"]}).invoke(given, THREAD) == {
        **given,
        "messages": ["plain", "text"],
    }


@OTHERS
def test_tools_and_other_nodes_find_the_conversation(cls: Any):
    def count(state: Any, by: int) -> str:
        """Count."""
        return str(get(state, "n") + by)

    call = Message.from_dict(
        {
            "role": "assistant",
            "contents": [{"type": "function_call", "call_id": "c", "name": "count", "arguments": {"by": 2}}],
        }
    )
    result = one(cls, ToolNode([count])).invoke({"n": 1, "messages": [call]}, THREAD)
    assert result["messages"][-1].contents[0].result == "3"


class Strict(BaseModel):
    low: int = Field(ge=0)
    high: int
    total: Annotated[int, Field(le=10), operator.add] = 0

    @model_validator(mode="after")
    def _in_order(self) -> Strict:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


@pytest.mark.parametrize(("update", "named"), [({"low": -1}, "low"), ({"low": 9}, "Strict"), ({"total": 8}, "total")])
def test_validators_and_constraints_of_a_model_count_when_something_is_written(update: Any, named: str):
    app = one(Strict, lambda state: update)
    with pytest.raises(StateValidationError) as caught:
        app.invoke({"low": 1, "high": 2, "total": 5}, THREAD)
    assert (caught.value.node, caught.value.field) == ("node", named)


@pydantic.dataclasses.dataclass
class Checked:
    low: int = Field(ge=0)
    log: Annotated[list[str], operator.add] = Field(default_factory=list)


def test_constraints_of_a_pydantic_dataclass_count():
    assert one(Checked, lambda state: {"log": ["a"]}).invoke({"low": 1}, THREAD) == {"low": 1, "log": ["a"]}
    with pytest.raises(StateValidationError):
        one(Checked, lambda state: {"low": -1}).invoke({"low": 1}, THREAD)


@dataclass(frozen=True)
class Later:
    n: int = 1
    twice: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "twice", 2 * self.n)


def test_a_frozen_dataclass_with_derived_fields():
    assert one(Later, lambda state: {"n": state.twice}).invoke({"n": 3}, THREAD) == {"n": 6}
    assert one(Later, lambda state: Later(state.twice)).invoke(Later(), THREAD) == {"n": 2, "twice": 4}


class Plain:
    n: int


@pytest.mark.parametrize("state", [dict, Plain, Plain(), 5, {"n": 1}, "Typed"])
def test_what_is_no_state_class_is_refused(state: Any):
    with raises(TypeError, "TypedDict"):
        StateGraph(state)


def test_annotations_that_cannot_be_read_are_refused():
    class Hidden(TypedDict):
        n: Unknown  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(GraphError) as caught:
        StateGraph(Hidden)
    assert (caught.value.error_code, caught.value.field) == ("GRAPH_008", "Unknown")


@OTHERS
async def test_a_graph_is_a_node_of_a_workflow_and_an_agent(cls: Any):
    app = one(cls, lambda state: "Hello")
    workflow = WorkflowBuilder(start_executor=app.as_executor("count")).build()
    given = {"n": 1} if cls is Typed else cls(n=1)
    assert (await workflow.run(given)).get_outputs()[0]["n"] == 1
    talking = one(Kinds, lambda state: "Hello").as_agent("talks")
    assert (await talking.run("Hi")).text == "Hello"
