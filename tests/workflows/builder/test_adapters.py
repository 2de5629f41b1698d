import pytest

from agentbench.workflows.builder.adapters import as_executor, register_executor_adapter, require_executor
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor


class Robot:
    def __init__(self, name):
        self.name = name


class RobotExecutor(Executor):
    def __init__(self, robot, mode):
        super().__init__(robot.name, defer_discovery=True)
        self.robot, self.mode = robot, mode


@pytest.fixture
def robots():
    unregister = register_executor_adapter(
        lambda obj: isinstance(obj, Robot), lambda robot, *, agent_mode: RobotExecutor(robot, agent_mode)
    )
    yield
    unregister()


def test_an_executor_stands_for_itself():
    node = FunctionExecutor(lambda m: None, "a", input=str)
    assert as_executor(node) is node
    assert require_executor(node) is node


@pytest.mark.usefixtures("robots")
def test_an_adapter_makes_the_node_and_is_told_the_mode():
    robot = Robot("r2")
    node = as_executor(robot, agent_mode="turns")
    assert isinstance(node, RobotExecutor)
    assert (node.id, node.robot, node.mode) == ("r2", robot, "turns")
    assert require_executor(robot).mode == "respond"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("robots")
def test_the_adapter_that_was_registered_last_is_asked_first():
    special = FunctionExecutor(lambda m: None, "special", input=str)
    unregister = register_executor_adapter(lambda obj: isinstance(obj, Robot), lambda robot, agent_mode: special)
    assert as_executor(Robot("a")) is special
    unregister()
    unregister()
    assert isinstance(as_executor(Robot("a")), RobotExecutor)


@pytest.mark.usefixtures("robots")
def test_an_adapter_for_something_else_is_passed_over():
    assert as_executor("writer") is None


def test_without_an_adapter_there_is_no_executor():
    assert as_executor(Robot("a")) is None


@pytest.mark.parametrize(
    ("thing", "hint"),
    [
        (Robot("a"), "register_executor_adapter"),
        ("writer", "id of an added one"),
        (RobotExecutor, "pass an instance, such as RobotExecutor"),
        (len, r"FunctionExecutor\(len\)"),
        (None, "NoneType"),
    ],
)
def test_something_that_is_no_node_is_refused_with_advice(thing, hint):
    with pytest.raises(TypeError, match=hint):
        require_executor(thing)
