from typing import Annotated, TypedDict

from langchain_core.messages import RemoveMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages


def texts(messages):
    return [message.text for message in messages]


print(texts(add_messages([], "Hello")))
print(texts(add_messages([("user", "Hello")], ("ai", "Hi"))))
print(texts(add_messages({"role": "user", "content": "Hello"}, [{"role": "ai", "content": "Hi"}, ["user", "Bye"]])))
first = add_messages([], [{"role": "user", "content": "a", "id": "m1"}, {"role": "user", "content": "b", "id": "m2"}])
print(texts(add_messages(first, RemoveMessage(id="m1"))))
for wrong in (5, [("robot", "Hi")], {"content": "Hi"}):
    try:
        add_messages([], wrong)
    except Exception:
        print("refused")


def keep_last_two(left, right):
    return add_messages(left, right)[-2:]


class Chat(TypedDict):
    messages: Annotated[list, keep_last_two]


graph = StateGraph(Chat)
graph.add_node("answer", lambda state: {"messages": ("ai", f"{len(state['messages'])} before")})
graph.add_edge(START, "answer")
app = graph.compile()
print(texts(app.invoke({"messages": ["a", "b", "c"]})["messages"]))
