"""The error tree: who descends from whom, what is kept, what is logged."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import re
from collections.abc import Callable
from typing import Any
from unittest.mock import call

import pytest

from agentbench import exceptions as x
from agentbench.exceptions import AgentFrameworkException, ValidationTypeEnum

# What else callers may catch them as.
BUILTIN: dict[type[Exception], set[str]] = {
    TypeError: {
        "AdditionItemMismatch", "MissingResponseHandlerError", "ToolArgumentsError", "UnpicklableError",
        "UnstorableValueError",
    },
    ValueError: {
        "BatchInputError", "EmptyConversationError", "FileStoreError", "FunctionCheckpointError", "GraphCompileError",
        "HistoryFileError", "KeepTestError", "MagicUsageError", "MergeError", "RequestAlreadyAnswered",
        "RequestExpired", "StateValidationError", "VariantError", "WorkflowTextError",
    },
    RecursionError: {"GraphRecursionError"},
    KeyError: {"BatchNotFoundError", "NodeNotFoundError"},
    RuntimeError: {"NestedLoopError", "NoBlockingError", "PlacementError", "WorkflowBusyError"},
    TimeoutError: {"ExecutorTimeoutError", "NodeTimeoutError", "RunTimeoutError"},
    ModuleNotFoundError: {"MissingExtraError"},
}  # fmt: skip

# How one of each class is made whose constructor is its own.
SPECIAL: dict[str, Any] = {
    "BatchChangedError": call("m", changes={"write": "changed"}, rows=2),
    "BatchInputError": call("m", position=1, key="k"),
    "VariantError": call("m", variant="v", entry="stat", nearest="state"),
    "BatchNotFoundError": call("m", name="k", names=["a"]),
    "BatchStoppedError": call("m", failed=1, key="k"),
    "RunFailedError": call("m", "ConnectionError", "fetch, superstep 3", "Traceback ..."),
    "RunTimeoutError": call(["write"], 2.0),
    "UserInputRequiredException": call(["q"]),
    "MissingResponseHandlerError": call("e", int, str),
    "ToolArgumentsError": call("m", ("a: b",)),
    "ToolResultError": call("m", contents=["c"]),
    "MCPLimitError": call("s", "x", "max_tools", 5),
    "MiddlewareFailure": call("no password"),
    "MiddlewareTermination": call(result=7),
    "EvalNotPassedError": call("m", [1]),
    "OpenAIContentFilterException": call(
        "m", param="prompt", content_filter_code="violence", content_filter_result={"violence": {"filtered": True}}
    ),
    "CassetteMissError": call("m", path="c.json", request={"a": 1}, nearest={"a": 2}, difference="a"),
    "MissingExtraError": call("notebook", "pandas", purpose="tabulate a run"),
    "NotInBrowserError": call("Forks", reason="a page has none", instead="Use a spoon."),
    "SiteError": call("There is no cake", "Bake one."),
    "UnrecordedCallError": call("m", executor_id="a", request={"messages": []}),
    "RedoError": call("m", changed=["a"], missing={"a": "it is a lambda"}),
    "KeepTestError": call("m", names=["n"], lines=[3]),
    "HistoryFileError": call("s.jsonl", "m", 3),
    "FileStoreError": call("../a.md", "It leaves the store."),
    "ExecutorTimeoutError": call("slow", 1.5),
    "EmptyConversationError": call("dispatcher"),
    "WorkflowConvergenceException": call("m", max_iterations=3, pending={"a": 2}),
    "MessageLimitError": call("flow", 3, 10, {"a": 12}),
    "WorkflowCheckpointException": call("m", error_code="STORAGE_007", context={"table": "t"}),
    "CheckpointNotFoundError": call("cp-9"),
    "MigrationError": call("m", checkpoint_id="cp", name="draft"),
    "GraphMismatchError": call("m", differences=[{"path": "executors.a", "before": 1, "after": None}]),
    "UnknownStoredTypeError": call("shop.Order"),
    "UnstorableValueError": call(complex, "Store its parts.", path="state['z']"),
    "WorkflowValidationError": call("m", ValidationTypeEnum.OUTPUT_VALIDATION),
    "EdgeDuplicationError": call("a->b"),
    "TypeCompatibilityError": call("a", "b", [str, list[int]], [int]),
    "GraphConnectivityError": call("m"),
    "GraphError": call("m", "GRAPH_003", {"node_name": "a"}, node="a", field="f", task_id="t", step=2, thread_id="th"),
    "PlacementError": call("m", "a"),
    "RemoteExecutorError": call("a", "tcp://127.0.0.1:4000", "KeyError", "k", "Traceback"),
    "UnpicklableError": call("executor 'a'", ".lock", "its part .lock is a lock.", "Use none."),
    "GraphCompileError": call("m", "GRAPH_002"),
    "GraphRecursionError": call("m", max_iterations=4, result={"n": 1}),
    "NodeTimeoutError": call("m", "NODE_TIMEOUT_002", node="a"),
    "RendererUnavailable": call("dot", "graphviz-pure"),
    "WidgetsUnavailable": call("the form is printed as text"),
    "RenderFailed": call("dot", "syntax error in line 2", dot_line="a -> ;", fallback="builtin"),
    "StepperStateError": call("done", ("back", "fork"), "step"),
    "StepperClosed": call(),
    "InvalidEdit": call("a.b", "not an int"),
    "MergeError": call("answer.json", "it is not JSON"),
    "FormInvalid": call({"age": "not a number"}),
    "UnsupportedSchema": call("oneOf", "/a"),
    "RequestAlreadyAnswered": call("r1", "2024-01-01"),
    "RequestExpired": call("r1", "2024-01-01"),
    "NestedLoopError": call("run", "uvloop cannot be nested"),
    "WorkflowTextError": call("expected a name; found ','", line=2, column=5, source="a ->, b"),
    "NoBlockingError": call("run"),
}
NO_ATTRIBUTES = {("HistoryFileError", "problem"), ("MCPLimitError", "sent")}
# What they have besides what they are given.
MORE: dict[str, dict[str, Any]] = {
    "EdgeDuplicationError": {"validation_type": ValidationTypeEnum.EDGE_DUPLICATION},
    "TypeCompatibilityError": {"validation_type": ValidationTypeEnum.TYPE_COMPATIBILITY},
    "GraphConnectivityError": {"validation_type": ValidationTypeEnum.GRAPH_CONNECTIVITY},
    "GraphCompileError": {"validation_type": ValidationTypeEnum.GRAPH_CONNECTIVITY},
    "GraphRecursionError": {"error_code": "RECURSION_001"},
    "MissingExtraError": {"name": "pandas"},
    "RendererUnavailable": {"name": "graphviz-pure", "extra": "notebook"},
    "WidgetsUnavailable": {"name": "ipywidgets"},
}

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def all_classes() -> dict[str, type[AgentFrameworkException]]:
    return {
        name: member
        for name, member in vars(x).items()
        if inspect.isclass(member) and issubclass(member, AgentFrameworkException) and name == member.__name__
    }


def test_some_errors_are_also_those_of_python() -> None:
    found = [(base, name) for name, cls in all_classes().items() for base in cls.__bases__]
    found = [(base, name) for base, name in found if base.__module__ == "builtins" and base is not Exception]
    assert sorted(found, key=str) == sorted(((base, name) for base in BUILTIN for name in BUILTIN[base]), key=str)


def test_the_inner_error_is_logged_and_stored(caplog: pytest.LogCaptureFixture) -> None:
    inner = ValueError("i")
    with caplog.at_level(logging.DEBUG, logger="agentbench"):
        error = AgentFrameworkException("m", inner)
    assert caplog.records[0].exc_info == (ValueError, inner, None)
    assert error.args == ("m", inner)
    assert error.inner_exception is inner


def test_the_inner_error_is_the_cause_unless_another_is_named() -> None:
    inner, other = ValueError("i"), KeyError("k")
    with pytest.raises(AgentFrameworkException) as caught:
        raise AgentFrameworkException("m", inner)
    assert caught.value.__cause__ is inner
    with pytest.raises(AgentFrameworkException) as caught:
        raise AgentFrameworkException("m", inner) from other
    assert (caught.value.__cause__, caught.value.inner_exception) == (other, inner)
    assert AgentFrameworkException("m").__cause__ is None
    assert isinstance(pickle.loads(pickle.dumps(AgentFrameworkException("m", inner))).__cause__, ValueError)


@pytest.mark.parametrize("make", [lambda: x.UserInputRequiredException(["q"]), x.MiddlewareTermination])
def test_errors_that_are_no_failures_are_not_logged(
    make: Callable[[], object], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="agentbench"):
        make()
    assert caplog.records == []


def test_every_class_with_a_constructor_of_its_own_is_among_the_special_cases() -> None:
    own = {name for name, cls in all_classes().items() if "__init__" in cls.__dict__}
    assert own - {"AgentFrameworkException"} <= SPECIAL.keys()


@pytest.mark.parametrize("name", SPECIAL)
def test_facts_are_attributes_that_pickles_and_copies_have_too(name: str, caplog: pytest.LogCaptureFixture) -> None:
    cls, given = getattr(x, name), SPECIAL[name]
    error = cls(*given.args, **given.kwargs)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="agentbench"):
        facts = inspect.signature(cls).bind(*given.args, **given.kwargs).arguments
        facts = {fact: value for fact, value in facts.items() if (name, fact) not in NO_ATTRIBUTES} | MORE.get(name, {})
        for again in (error, *(way(error) for way in WAYS.values())):
            assert type(again) is cls
            assert (str(again), again.args, again.message) == (str(error), error.args, error.message)
            assert {fact: getattr(again, fact) for fact in facts} == facts
    assert caplog.records == []


def test_a_validation_error_shows_its_type_before_the_message() -> None:
    error = x.WorkflowValidationError("m", ValidationTypeEnum.TYPE_COMPATIBILITY)
    assert str(error) == "[TYPE_COMPATIBILITY] m"
    assert error.message == "m"


def test_a_validation_type_may_be_text_and_must_exist() -> None:
    error = x.WorkflowValidationError("m", "OUTPUT_VALIDATION")  # type: ignore[arg-type]
    assert error.validation_type is ValidationTypeEnum.OUTPUT_VALIDATION
    with pytest.raises(ValueError, match="NO_SUCH"):
        x.WorkflowValidationError("m", "NO_SUCH")  # type: ignore[arg-type]


def test_types_that_do_not_fit_are_named() -> None:
    text = str(x.TypeCompatibilityError("a", "b", [str, list[int]], []))
    assert "'a' sends str, list[int]" in text
    assert "'b' takes nothing" in text


def test_a_missing_extra_is_an_import_error_that_says_what_to_type() -> None:
    with pytest.raises(ImportError, match=re.escape(x.install_command("notebook"))) as caught:
        raise x.MissingExtraError("notebook", "pandas", purpose="tabulate a run")
    assert "tabulate a run" in str(caught.value)
    assert caught.value.name == "pandas"


def test_graph_errors_show_their_code_and_turn_into_plain_data() -> None:
    error = x.NodeError("it broke", context={"node_name": "a"}, node="a")
    assert str(error) == "[NODE_001] it broke"
    assert error.to_dict() == {
        "error_type": "NodeError",
        "error_code": "NODE_001",
        "message": "it broke",
        "context": {"node_name": "a"},
    }
    assert (error.field, error.step, error.errors) == (None, None, ())
    assert str(x.GraphError("m")) == "[GRAPH_000] m"
    assert str(x.NodeTimeoutError("m")) == "[NODE_TIMEOUT_001] m"
    assert x.GraphRecursionError("m").pending == {}


def test_a_compile_error_counts_as_a_validation_error() -> None:
    with pytest.raises(x.WorkflowValidationError) as caught:
        raise x.GraphCompileError("no entry", "GRAPH_002")
    assert str(caught.value) == "[GRAPH_002] no entry"
