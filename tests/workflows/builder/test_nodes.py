import pytest

from agentbench.workflows.builder.adapters import register_executor_adapter
from agentbench.workflows.builder.nodes import Nodes
from agentbench.workflows.executors.function_executor import FunctionExecutor


class Robot:
    def __init__(self, name):
        self.name = name


def node(key="a"):
    return FunctionExecutor(lambda m: None, key, input=str)


@pytest.fixture
def made():
    """What the adapter of robots was asked for."""
    asked = []

    def make(robot, *, agent_mode):
        asked.append((robot, agent_mode))
        return node(robot.name)

    unregister = register_executor_adapter(lambda obj: isinstance(obj, Robot), make)
    yield asked
    unregister()


def test_adding_the_same_object_again_changes_nothing():
    nodes, first = Nodes("respond"), node()
    assert nodes.add(first) is nodes.add(first) is first
    assert nodes.executors == {"a": first}


def test_another_object_with_the_same_id_is_refused():
    nodes = Nodes("respond")
    nodes.add(node())
    with pytest.raises(ValueError, match="Two nodes have the id 'a'"):
        nodes.add(node())


def test_an_object_is_adapted_once_with_the_mode_of_the_builder(made):
    nodes, robot = Nodes("turns"), Robot("r")
    assert nodes.add(robot) is nodes.find(robot) is nodes.executors["r"]
    assert nodes.id_of(robot) == "r"
    assert made == [(robot, "turns")]


@pytest.mark.usefixtures("made")
def test_two_objects_of_one_name_are_refused():
    nodes = Nodes("respond")
    nodes.add(Robot("r"))
    with pytest.raises(ValueError, match="Two nodes have the id 'r'"):
        nodes.add(Robot("r"))


@pytest.mark.usefixtures("made")
def test_asking_for_an_id_adds_nothing():
    nodes = Nodes("respond")
    assert nodes.id_of(node("b")) == "b"
    assert nodes.id_of(Robot("r")) == "r"
    assert nodes.executors == {}


def test_a_node_is_found_by_its_id():
    nodes, first = Nodes("respond"), node()
    nodes.add(first)
    assert nodes.find("a") is first


def test_an_unknown_id_is_refused_and_the_known_ones_are_named():
    nodes = Nodes("respond")
    nodes.add(node())
    with pytest.raises(ValueError, match=r"'b'; there are \['a'\]"):
        nodes.find("b")


def test_an_id_is_no_node():
    with pytest.raises(TypeError, match="not a node"):
        Nodes("respond").add("a")
