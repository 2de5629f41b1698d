from langgraph.config import get_config, get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph


def chat(state: MessagesState):
    writer = get_stream_writer()
    words = state["messages"][-1].text.split()
    for word in words:
        writer({"token": word})

    mark = get_config()["configurable"].get("mark", "")
    return {"messages": [{"role": "ai", "content": " ".join(reversed(words)) + mark}]}


g = StateGraph(MessagesState)
g.add_node(chat)
g.add_edge(START, "chat")
g.add_edge("chat", END)
app = g.compile()
for mode, chunk in app.stream(
    {"messages": [("user", "a b c")]}, {"configurable": {"mark": "!"}}, stream_mode=["custom", "updates"]
):
    print(mode, chunk if mode == "custom" else len(chunk["chat"]["messages"]))
for item in app.stream({"messages": "hey you"}, stream_mode="values"):
    item["messages"][-1].pretty_print() if False else print(len(item["messages"]), item["messages"][-1].text)
