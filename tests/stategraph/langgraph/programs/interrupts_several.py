from dataclasses import dataclass

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


@dataclass
class Person:
    name: str = ""
    age: int = 0


def ask(state: Person):
    name = interrupt("name?")
    age = interrupt(f"age of {name}?")
    while age < 0:
        age = interrupt("again?")
    return {"name": name, "age": age}


graph = StateGraph(Person)
graph.add_node("ask", ask)
graph.add_edge(START, "ask")
app = graph.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
print([each.value for each in app.invoke({"name": ""}, config)["__interrupt__"]])
for answer in ("Ann", -1, 7):
    result = app.invoke(Command(resume=answer), config)
    print([each.value for each in result.get("__interrupt__", [])], result["name"], result.get("age"))
