"""Real servers for tests: the demo server over each transport, and small ones that misbehave over stdio."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentbench import FunctionTool, MCPStdioTool
from tests.servers.process import ServerProcess, answers

DEMO = Path(__file__).parents[2] / "servers" / "demo_server.py"
ROOT = DEMO.parents[2]

quiet = open(os.devnull, "w")  # noqa: SIM115 - the servers of these tests complain on purpose


def demo(name: str = "demo", **options: Any) -> MCPStdioTool:
    return MCPStdioTool(name, sys.executable, args=[str(DEMO), "stdio"], errlog=quiet, **options)


@contextmanager
def demo_process(kind: str) -> Iterator[ServerProcess]:
    """Run the demo server behind HTTP or a WebSocket."""
    server = ServerProcess(f"mcp-{kind}")
    start(server, kind)
    try:
        yield server
    finally:
        server.remove()


def start(server: ServerProcess, kind: str) -> None:
    request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    server.start([sys.executable, DEMO, kind, str(server.port)], lambda: answers(server.port, request, b"HTTP/1.1"))


def named(functions: list[FunctionTool], name: str) -> FunctionTool:
    return next(function for function in functions if function.name == name)


def text(contents: Any) -> str:
    return str(contents[0].text)


async def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for what a server causes by itself."""
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


RAW = """
import json, sys, time

def answer(request, result=None, error=None):
    what = {"error": error} if error else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **what}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    method, params = request.get("method"), request.get("params") or {}
    if method == "initialize":
        capabilities = CAPABILITIES
        answer(request, {"protocolVersion": params["protocolVersion"], "capabilities": capabilities,
                         "serverInfo": {"name": "raw", "version": "1"}})
    elif "id" in request:
        BODY
"""


def raw(body: str, *, capabilities: Any = None, **options: Any) -> MCPStdioTool:
    """A server that speaks the protocol by hand: `body` answers each request but the first."""
    given = json.dumps({"tools": {}} if capabilities is None else capabilities)
    code = RAW.replace("CAPABILITIES", given).replace("BODY", body.strip().replace("\n", "\n        "))
    return MCPStdioTool("raw", sys.executable, args=["-c", code], errlog=quiet, **options)


def adder(**options: Any) -> MCPStdioTool:
    """A server with one tool, which starts at once: where it matters how connections come and go, not what is said."""
    return raw(
        """
if method == "tools/list":
    answer(request, {"tools": [{"name": "add", "inputSchema": {"type": "object", "properties": {"a": {}}}}]})
elif method == "tools/call":
    answer(request, {"content": [{"type": "text", "text": str(params["arguments"]["a"] + 1)}]})
else:
    answer(request, {})
""",
        **options,
    )


QUESTION_SCHEMA = {
    "type": "object",
    "properties": {"day": {"type": "string"}, "seats": {"type": "integer", "default": 2}},
    "required": ["day"],
}

EMPTY = {"type": "object", "properties": {}}

RESTAURANT = """
if method == "tools/list":
    answer(request, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("book", "plain")]})
elif params["name"] == "plain":
    answer(request, {"content": [{"type": "text", "text": "plain"}]})
else:
    answers = []
    other = json.loads(sys.stdin.readline()) if params["arguments"].get("during_another_call") else None
    for question in QUESTIONS:
        print(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question}), flush=True)
        reply = json.loads(sys.stdin.readline())
        answers.append(reply.get("result"))
        if answers[-1]["action"] == "cancel":
            break
    if other:
        answer(other, {"content": [{"type": "text", "text": "plain"}]})
    answer(request, {"content": [{"type": "text", "text": json.dumps(answers)}]})
"""


def restaurant(*messages: str, schema: Any = QUESTION_SCHEMA, **options: Any) -> MCPStdioTool:
    """A server whose tool `book` asks these questions one after another, and returns the answers that it got."""
    questions = [{"message": message, "requestedSchema": schema} for message in messages]
    return raw(RESTAURANT.replace("QUESTIONS", repr(questions)), **options)
