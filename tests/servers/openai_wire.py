"""What a server of OpenAI's protocol sends, as plain JSON: completions, chunks, responses, errors, embeddings."""

from __future__ import annotations

from typing import Any

CREATED = 1_704_164_645  # 2024-01-02T03:04:05Z
CREATED_AT = "2024-01-02T03:04:05+00:00"


def call(call_id: str | None, name: str | None, arguments: str | None, index: int | None = None) -> dict[str, Any]:
    """A tool call, or with an index the delta of one; what is `None` is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: dict[str, Any] = {} if index is None else {"index": index}
    if call_id is not None:
        made |= {"id": call_id, "type": "function"}
    return made | {"function": function}


def usage(prompt: int, completion: int, **details: int) -> dict[str, Any]:
    """Token counts; `cached=` and `reasoning=` are details."""
    counts: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
    counts["total_tokens"] = prompt + completion
    if "cached" in details:
        counts["prompt_tokens_details"] = {"cached_tokens": details["cached"]}
    if "reasoning" in details:
        counts["completion_tokens_details"] = {"reasoning_tokens": details["reasoning"]}
    return counts


def completion(content: str | None = "Hello.", *, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion with one choice. `usage=` belongs to the completion, everything else to the message."""
    counts = more.pop("usage", None)
    message = {"role": "assistant", "content": content, **more}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": CREATED,
        "model": "served-model",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        **({} if counts is None else {"usage": counts}),
    }


def chunk(content: str | None = None, *, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk of a streamed completion; further keywords belong to the delta."""
    body = dict(delta) if content is None else {"content": content, **delta}
    return bare_chunk(choices=[{"index": 0, "delta": body, "finish_reason": finish}])


def bare_chunk(**fields: Any) -> dict[str, Any]:
    """A chunk with these fields besides the ones that all have."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": "served-model",
        **fields,
    }


def error(message: str = "No.", code: str | None = None, **fields: Any) -> dict[str, Any]:
    """The body of a failed request."""
    return {"error": {"message": message, "type": "some_error", "param": None, "code": code, **fields}}


def response(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    """An answer of the Responses API with these output items."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": CREATED,
        "model": "served-model",
        "status": status,
        "output": list(output),
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **fields,
    }


def output_message(text: str, **part: Any) -> dict[str, Any]:
    """An output item with one text."""
    content = {"type": "output_text", "text": text, "annotations": [], **part}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [content]}


def output_call(call_id: str, name: str, arguments: str, item_id: str = "fc_1") -> dict[str, Any]:
    """An output item that is a function call."""
    made = {"type": "function_call", "id": item_id, "call_id": call_id, "name": name, "arguments": arguments}
    return {**made, "status": "completed"}


def response_usage(given: int, made: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """Token counts of the Responses API."""
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": given + made,
    }


def events(*bodies: dict[str, Any]) -> list[dict[str, Any]]:
    """Events of a streamed response, numbered."""
    return [{**body, "sequence_number": number} for number, body in enumerate(bodies)]


def embeddings(*vectors: list[float], tokens: int = 3) -> dict[str, Any]:
    """An answer with one embedding per vector."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    counts = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": "served-embedding", "data": data, "usage": counts}
