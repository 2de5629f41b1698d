"""Contents, messages and responses of every kind, for the laws."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agentbench.messages.content.content import Content
from agentbench.messages.content.media import Annotation
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate

texts = st.text(max_size=12)
ids = st.text("abc-_1é", min_size=1, max_size=6)
maybe_texts = st.none() | texts
maybe_ids = st.none() | ids
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
properties = st.dictionaries(texts, json_values, max_size=2)
arguments = st.none() | texts | st.dictionaries(texts, json_values, max_size=2)
media_types = st.sampled_from(["image/png", "text/plain", "application/pdf"])
usages = st.dictionaries(
    st.sampled_from(["input_token_count", "output_token_count", "x"]), st.integers(0, 99), max_size=3
)
some_annotations: st.SearchStrategy[Any] = st.none() | st.lists(
    st.builds(
        lambda title, start: Annotation(
            type="citation",
            title=title,
            annotated_regions=[{"type": "text_span", "start_index": start, "end_index": start + 1}],
        ),
        texts,
        st.integers(0, 9),
    ),
    max_size=2,
)
common: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {}, optional={"annotations": some_annotations, "additional_properties": properties}
)


def built(factory: Any, *positional: Any, **named: Any) -> st.SearchStrategy[Content]:
    """Contents of one factory, with and without what any content may have."""
    return st.builds(
        lambda given, keywords, extra: factory(*given, **keywords, **extra),
        st.tuples(*positional),
        st.fixed_dictionaries(named),
        common,
    )


text_contents = built(Content.from_text, texts)
calls = built(Content.from_function_call, ids, ids, arguments=arguments, exception=maybe_texts)
simple_contents = st.one_of(
    text_contents,
    built(Content.from_text_reasoning, id=maybe_ids, text=maybe_texts, protected_data=maybe_texts),
    built(Content.from_data, st.binary(max_size=9), media_types),
    built(Content.from_error, message=maybe_texts, error_code=maybe_texts, error_details=maybe_texts),
    built(Content.from_hosted_file, ids, media_type=st.none() | media_types, name=maybe_texts),
)
lists_of_contents = st.lists(simple_contents, max_size=2)
outputs = json_values.filter(lambda value: not _looks_like_content(value)) | lists_of_contents

#: One strategy per factory, under its name.
BY_FACTORY: dict[str, st.SearchStrategy[Content]] = {
    "from_text": text_contents,
    "from_text_reasoning": built(
        Content.from_text_reasoning, id=maybe_ids, text=maybe_texts, protected_data=maybe_texts
    ),
    "from_data": built(Content.from_data, st.binary(max_size=9), media_types),
    "from_uri": built(Content.from_uri, st.just("https://example.org/a.png"), media_type=media_types),
    "from_error": built(Content.from_error, message=maybe_texts, error_code=maybe_texts, error_details=maybe_texts),
    "from_function_call": calls,
    "from_function_result": built(
        Content.from_function_result, ids, result=json_values | lists_of_contents, exception=maybe_texts
    ),
    "from_usage": built(Content.from_usage, usages),
    "from_hosted_file": built(Content.from_hosted_file, ids, media_type=st.none() | media_types, name=maybe_texts),
    "from_hosted_vector_store": built(Content.from_hosted_vector_store, ids),
    "from_code_interpreter_tool_call": built(
        Content.from_code_interpreter_tool_call, call_id=maybe_ids, inputs=st.none() | lists_of_contents
    ),
    "from_code_interpreter_tool_result": built(
        Content.from_code_interpreter_tool_result, call_id=maybe_ids, outputs=st.none() | lists_of_contents
    ),
    "from_image_generation_tool_call": built(Content.from_image_generation_tool_call, image_id=maybe_ids),
    "from_image_generation_tool_result": built(
        Content.from_image_generation_tool_result, image_id=maybe_ids, outputs=outputs | simple_contents
    ),
    "from_mcp_server_tool_call": built(
        Content.from_mcp_server_tool_call, ids, ids, server_name=maybe_texts, arguments=arguments
    ),
    "from_mcp_server_tool_result": built(Content.from_mcp_server_tool_result, ids, output=outputs),
    "from_search_tool_call": built(
        Content.from_search_tool_call, ids, tool_name=ids, arguments=arguments, status=maybe_texts
    ),
    "from_search_tool_result": built(
        Content.from_search_tool_result,
        ids,
        tool_name=ids,
        result=outputs,
        items=st.none() | lists_of_contents,
        status=maybe_texts,
    ),
    "from_shell_tool_call": built(
        Content.from_shell_tool_call,
        call_id=maybe_ids,
        commands=st.none() | st.lists(texts, max_size=2),
        timeout_ms=st.none() | st.integers(0, 9),
        max_output_length=st.none() | st.integers(0, 9),
        status=maybe_texts,
    ),
    "from_shell_tool_result": built(
        Content.from_shell_tool_result,
        call_id=maybe_ids,
        outputs=st.none() | lists_of_contents,
        max_output_length=st.none() | st.integers(0, 9),
    ),
    "from_shell_command_output": st.builds(
        Content.from_shell_command_output,
        stdout=maybe_texts,
        stderr=maybe_texts,
        exit_code=st.none() | st.integers(-1, 9),
        timed_out=st.none() | st.booleans(),
        additional_properties=properties,
    ),
    "from_function_approval_request": built(Content.from_function_approval_request, ids, calls),
    "from_function_approval_response": built(Content.from_function_approval_response, st.booleans(), ids, calls),
    "from_oauth_consent_request": built(Content.from_oauth_consent_request, texts),
}
contents = st.one_of(*BY_FACTORY.values())

messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool", "developer"]),
    st.lists(contents, max_size=3),
    author_name=maybe_texts,
    message_id=maybe_ids | st.integers(0, 9),
    delta=st.booleans(),
    timestamp=st.none() | st.floats(0, 2e9),
    usages=st.none() | st.dictionaries(ids, st.integers(0, 9), max_size=2),
    additional_properties=properties,
)
_named = {
    "response_id": maybe_ids,
    "created_at": maybe_texts,
    "finish_reason": st.none() | st.sampled_from(["stop", "length", "other"]),
    "continuation_token": st.none() | st.dictionaries(ids, texts, max_size=1),
}
_whole = {
    "usage_details": st.none() | usages,
    "messages": st.lists(messages, max_size=2),
    "additional_properties": properties,
}
_piece = {
    "contents": st.lists(contents, max_size=2),
    "role": st.none() | st.sampled_from(["assistant", "tool"]),
    "author_name": maybe_texts,
    "message_id": maybe_ids,
    "additional_properties": st.none() | properties,
}
_of_chat = {"model": maybe_ids, "conversation_id": maybe_ids}
_of_agent = {"agent_id": maybe_ids}
records = st.one_of(
    messages,
    st.builds(ChatResponse, **_named, **_whole, **_of_chat),
    st.builds(AgentResponse, **_named, **_whole, **_of_agent),
    st.builds(ChatResponseUpdate, **_named, **_piece, **_of_chat),
    st.builds(AgentResponseUpdate, **_named, **_piece, **_of_agent),
)


def _looks_like_content(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_looks_like_content, value))
    return isinstance(value, dict) and "type" in value
