"""A cassette as a table of its calls: number, use, prompt and answer. Reads no file."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from agentbench._text.phrases import count_text
from agentbench.agents.clients.cassette.client import CassetteChatClient
from agentbench.agents.clients.cassette.lines import StoredCall
from agentbench.agents.clients.cassette.recording import ModelRecording
from agentbench.notebook.look.html import Page, Table


def cassette(client: CassetteChatClient) -> dict[str, Any]:
    """Return the views of a cassette by media type: its calls by number, with how often this client used each."""
    calls = client.recorded_calls
    served = Counter(call.number for call in client.calls if call.served)
    recorded = Counter(call.number for call in client.calls if not call.served)
    rows = []
    for call in calls:
        # The number of uses, and whether it was recorded here; short, because the column is narrow.
        times = f"{served[call.number]}\N{MULTIPLICATION SIGN}" if served[call.number] else ""
        use = ", ".join(filter(None, ("new" if recorded[call.number] else "", times))) or "not yet"
        rows.append((call.number, use, _prompt_text(call), call.answer or _kind(call)))
    model = [f"model {client.model}"] if client.model else []
    facts = [f"mode {client.mode}", *model, count_text(len(calls), "call")]
    if len(calls) > (unused := len(client.unused())) > 0:
        facts.append(f"{unused} not served yet")
    table = Table("Calls", ("call", "served", "prompt", "answer"), rows)
    return Page(f"Cassette {os.path.basename(client.path)}", facts=facts, tables=[table]).bundle()


def recording(recorded: ModelRecording) -> dict[str, Any]:
    """Return the views of the recording of a run by media type."""
    rows = [
        (each.superstep, each.executor_id, _prompt_text(each.call), each.call.answer or _kind(each.call))
        for each in recorded.recorded
    ]
    table = Table("Calls", ("superstep", "executor", "prompt", "answer"), rows)
    return Page(repr(recorded), tables=[table]).bundle()


def _prompt_text(call: StoredCall) -> str:
    """Return the user's last text, with the number of tool results after it."""
    results = 0
    for message in call.request.get("messages", ()):
        n_results = sum(content.get("type") == "function_result" for content in message.get("contents", ()))
        results = n_results if message.get("role") == "user" else results + n_results
    return f"{call.prompt} (+ {count_text(results, 'result')})" if results else call.prompt


def _kind(call: StoredCall) -> str:
    """Return the kinds of content of an answer that has neither text nor calls."""
    messages = call.updates if call.updates is not None else (call.response or {}).get("messages", ())
    kinds = {str(content.get("type")) for message in messages for content in message.get("contents", ())} - {"usage"}
    return f"({', '.join(sorted(kinds - {'text'})) or 'empty'})"
