from typing import Annotated, TypedDict

from langchain_core.messages import RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages


def texts(result):
    return [(message.text, message.id if str(message.id).startswith("m") else "?") for message in result["messages"]]


graph = StateGraph(MessagesState)
graph.add_node("answer", lambda state: {"messages": ("ai", f"Answer to {state['messages'][-1].text}")})
graph.add_edge(START, "answer")
app = graph.compile()
print(texts(app.invoke({"messages": "Hello"})))
print(texts(app.invoke({"messages": [("user", "Hello"), ("ai", "Yes?"), ("user", "Bye")]})))
print(texts(app.invoke({"messages": [{"role": "user", "content": "Hello", "id": "m1"}]})))
print(texts(app.invoke({"messages": {"role": "user", "content": "Hello"}})))


class State(MessagesState):
    count: int


def count(state: State):
    return {"count": len(state["messages"])}


graph = StateGraph(State)
graph.add_node("count", count)
graph.add_edge(START, "count")
result = graph.compile().invoke({"messages": [{"role": "user", "content": "a", "id": "m1"}, ("system", "b")]})
print(result["count"], texts(result))


class Chat(TypedDict):
    messages: Annotated[list, add_messages]


def tidy(state: Chat):
    return {"messages": [RemoveMessage(id=message.id) for message in state["messages"][:-1]]}


graph = StateGraph(Chat)
graph.add_node("tidy", tidy)
graph.add_edge(START, "tidy")
messages = [{"role": "user", "content": text, "id": f"m{text}"} for text in "abc"]
print(texts(graph.compile().invoke({"messages": messages})))

graph = StateGraph(Chat)
graph.add_node("clear", lambda state: {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), ("ai", "new start")]})
graph.add_edge(START, "clear")
print(texts(graph.compile().invoke({"messages": messages})))
