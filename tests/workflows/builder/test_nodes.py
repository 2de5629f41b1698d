import pytest

from agentbench import EchoChatClient, WorkflowBuilder, workflow
from agentbench.workflows.builder import nodes as nodes_module
from agentbench.workflows.builder.nodes import Nodes, as_executor, register_executor_adapter
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor
from tests.parts.errors import raises


class Robot:
    def __init__(self, name):
        self.name = name


class Cook(Robot):
    pass


class RobotExecutor(Executor):
    def __init__(self, robot, *, agent_mode):
        super().__init__(robot.name, defer_discovery=True)
        self.robot, self.mode = robot, agent_mode


def node(key="a"):
    return FunctionExecutor(lambda m: None, key, input=str)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(nodes_module, "_factories", dict(nodes_module._factories))


@pytest.fixture
def robots():
    register_executor_adapter(Robot, RobotExecutor)


# ---- adapters --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("robots")
def test_an_adapter_makes_the_node_of_an_object_and_of_those_of_subclasses():
    robot, cook = Robot("r2"), Cook("c3")
    made = as_executor(robot, agent_mode="turns")
    assert isinstance(made, RobotExecutor)
    assert (made.id, made.robot, made.mode) == ("r2", robot, "turns")
    assert as_executor(cook).robot is cook  # type: ignore[attr-defined]


@pytest.mark.usefixtures("robots")
def test_the_adapter_of_the_nearest_class_decides():
    special = node("special")
    register_executor_adapter(Cook, lambda cook, *, agent_mode: special)
    assert as_executor(Cook("c3")) is special
    assert isinstance(as_executor(Robot("r2")), RobotExecutor)


def test_the_module_that_has_the_adapter_of_a_class_is_imported_at_first_use(tmp_path, monkeypatch):
    (tmp_path / "kinds_of_robots.py").write_text("class Robot: ...\nclass Cook(Robot): ...\n")
    (tmp_path / "nodes_of_robots.py").write_text(
        "from agentbench import Executor\n"
        "from agentbench.workflows.builder.nodes import register_executor_adapter\n"
        "from kinds_of_robots import Robot\n"
        "made = Executor('robot', defer_discovery=True)\n"
        "register_executor_adapter(Robot, lambda robot, *, agent_mode: made)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(nodes_module._MODULE_OF_CLASS, "kinds_of_robots.Robot", "nodes_of_robots")
    kinds = __import__("kinds_of_robots")
    assert as_executor(kinds.Cook()).id == "robot"


async def talk(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("thing", "hint"),
    [
        (Robot("a"), "Wrap it in an executor"),
        ("writer", "id of an added one"),
        (RobotExecutor, "pass an instance, such as RobotExecutor"),
        (Robot, r"pass an instance, such as Robot\(\.\.\.\)"),
        (EchoChatClient(), r"as_agent\(name=\.\.\.\)"),
        (workflow(talk), r"as_agent\(name=\.\.\.\)"),
        (WorkflowBuilder(), r"build\(\)"),
        (len, r"FunctionExecutor\(len\)"),
        (None, "NoneType"),
    ],
)
def test_something_that_is_no_node_is_refused_with_advice(thing, hint):
    with pytest.raises(TypeError, match=hint):
        as_executor(thing)


def test_an_executor_that_left_out_its_base_is_refused_with_advice():
    class Forgetful(RobotExecutor):
        def __init__(self):
            self.count = 0

    with raises(TypeError, "Forgetful.__init__()", "super().__init__(id)"):
        Nodes("respond").add(Forgetful())


# ---- the nodes of a builder ------------------------------------------------------------------------


def test_adding_the_same_object_again_changes_nothing():
    nodes, first = Nodes("respond"), node()
    assert nodes.add(first) is nodes.add(first) is nodes.find("a") is first
    assert nodes.executors == {"a": first}


@pytest.mark.usefixtures("robots")
def test_another_object_with_the_same_id_is_refused():
    nodes = Nodes("respond")
    nodes.add(node())
    nodes.add(Robot("r"))
    for other in (node(), Robot("r")):
        with raises(ValueError, "nodes"):
            nodes.add(other)


@pytest.mark.usefixtures("robots")
def test_an_object_is_adapted_once_with_the_mode_of_the_builder():
    nodes, robot = Nodes("turns"), Robot("r")
    assert nodes.id_of(robot) == "r"
    assert nodes.executors == {}
    assert nodes.add(robot) is nodes.find(robot) is nodes.executors["r"]
    assert nodes.add(robot).mode == "turns"  # type: ignore[attr-defined]


def test_an_unknown_id_is_refused_and_the_known_ones_are_named():
    nodes = Nodes("respond")
    nodes.add(node())
    with raises(ValueError, "'b'", "'a'"):
        nodes.find("b")
