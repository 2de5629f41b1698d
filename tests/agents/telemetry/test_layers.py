"""The mixins: over classes of any make they make the spans, over ours they add their keywords."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")


from agentbench.agents.model.embeddings import BaseEmbeddingClient, Embedding, GeneratedEmbeddings
from agentbench.agents.model.layers import ChatMiddlewareLayer, FunctionInvocationLayer
from agentbench.agents.telemetry.layers import AgentTelemetryLayer, ChatTelemetryLayer, EmbeddingTelemetryLayer
from agentbench.agents.tools.decorator import tool
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate
from agentbench.observability import OBSERVABILITY_SETTINGS
from tests.agents.telemetry.conftest import Points, Spans
from tests.agents.telemetry.models import Model, called, said, updates_of
from tests.parts.errors import raises

# ---------------------------------------------------------------------------------------------------------------- chat


class PlainClient:
    """A client of another make, that streams in the given way."""

    OTEL_PROVIDER_NAME = "plain"
    model = "own"

    def __init__(self, *, way: str = "generator") -> None:
        self.additional_properties: dict[str, Any] = {}
        self.way = way
        self.asked: list[dict[str, Any]] = []

    def get_response(self, messages: Any, **keywords: Any) -> Any:
        self.asked.append({"messages": messages, **keywords})
        if not keywords.get("stream"):
            return said() if self.way == "at once" else self._later(said())
        updates = self._updates()
        if self.way == "stream":
            return ResponseStream(updates, finalizer=ChatResponse.from_updates)
        return self._later(updates) if self.way == "promise" else updates

    async def _later(self, value: Any) -> Any:
        return value

    async def _updates(self) -> AsyncIterator[ChatResponseUpdate]:
        for update in updates_of(said()):
            yield update


class TracedClient(ChatTelemetryLayer, PlainClient):
    pass


@pytest.mark.parametrize("way", ["generator", "promise", "stream", "at once"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_of_any_make_gets_a_span(spans: Spans, points: Points, way: str, stream: bool) -> None:
    client = TracedClient(way=way)
    if stream:
        response = await client.get_response("q", stream=True, options={"model": "asked"}).get_final_response()
    else:
        response = await client.get_response("q", options={"model": "asked"})
    assert response.messages == said().messages
    span = spans.one("chat asked")
    assert span.attributes["gen_ai.provider.name"] == "plain"
    assert span.attributes["gen_ai.usage.output_tokens"] == 20
    assert points.of("gen_ai.client.operation.duration")[0].count == 1
    (asked,) = client.asked
    assert asked == {"messages": "q", "options": {"model": "asked"}, **({"stream": True} if stream else {})}


async def test_with_telemetry_off_a_client_is_called_as_if_there_were_no_mixin(
    spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "ENABLED", False)
    client = TracedClient(way="at once")
    assert client.get_response("q").text == said().text
    assert spans.names() == []


@tool
def look(a: str) -> str:
    return a


@pytest.mark.parametrize("stream", [False, True])
async def test_over_a_chat_client_of_ours_the_mixins_add_no_second_span(spans: Spans, stream: bool) -> None:
    class Stack(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, Model):
        pass

    client: Any = Stack(called("look", a="x"), said(), otel_provider_name="mine", middleware=[])
    asked = client.get_response("q", stream=stream, options={"tools": [look]})
    await (asked.get_final_response() if stream else asked)
    assert spans.names() == ["chat unknown", "execute_tool look", "chat unknown"]
    assert spans.all()[0].attributes["gen_ai.provider.name"] == "mine"


async def _each(items: Any) -> AsyncIterator[Any]:
    for item in items:
        yield item


# --------------------------------------------------------------------------------------------------------------- agent


class PlainAgent:
    """An agent of another make."""

    id = "a1"
    name: str | None = "plain"
    description = None

    def __init__(self, *, way: str = "promise") -> None:
        self.way = way

    def run(self, messages: Any = None, *, stream: bool = False, session: Any = None) -> Any:
        if not stream:
            return self._answer(messages)
        updates = _each([AgentResponseUpdate(contents=[text], role="assistant") for text in ("a", "b")])
        if self.way == "stream":
            return ResponseStream(updates, finalizer=AgentResponse.from_updates)
        return self._later(updates) if self.way == "promise" else updates

    async def _answer(self, messages: Any) -> AgentResponse[Any]:
        if messages == "fail":
            raise ValueError(messages)
        return AgentResponse(messages=[Message("assistant", ["ab"])])

    async def _later(self, value: Any) -> Any:
        return value


class TracedAgent(AgentTelemetryLayer, PlainAgent):
    pass


@pytest.mark.parametrize("way", ["generator", "promise", "stream"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_of_any_make_gets_a_span(spans: Spans, sensitive: None, way: str, stream: bool) -> None:
    agent = TracedAgent(way=way, otel_provider_name="mine")
    response = await (agent.run("q", stream=True).get_final_response() if stream else agent.run("q"))
    assert response.text == "ab"
    span = spans.one("invoke_agent plain")
    assert span.attributes["gen_ai.provider.name"] == "mine"
    assert '"ab"' in span.attributes["gen_ai.output.messages"]


async def test_the_tools_of_a_run_are_displayed_with_those_of_its_options(spans: Spans) -> None:
    class Takes(PlainAgent):
        def run(self, messages: Any = None, *, stream: bool = False, **_: Any) -> Any:
            return self._answer(messages)

    class Traced(AgentTelemetryLayer, Takes):
        pass

    await Traced().run("q", tools=look, options={"tools": [{"type": "hosted"}]})
    shown = spans.one("invoke_agent").attributes["gen_ai.tool.definitions"]
    assert shown.index("hosted") < shown.index("look")


# ---------------------------------------------------------------------------------------------------------- embeddings


class Vectors(BaseEmbeddingClient[str, "list[float]", Any]):
    OTEL_PROVIDER_NAME = "ee"

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.calls = 0

    async def get_embeddings(self, values: Any, *, options: Any = None) -> GeneratedEmbeddings[list[float], Any]:
        self.calls += 1
        if "fail" in values:
            raise ValueError(values[0])
        return GeneratedEmbeddings(
            [Embedding([1.0, 2.0], model="em") for _ in values], usage={"input_token_count": 3, "output_token_count": 0}
        )


class TracedVectors(EmbeddingTelemetryLayer, Vectors):
    pass


async def test_an_embedding_call_gets_a_span_and_is_counted(spans: Spans, points: Points) -> None:
    client = TracedVectors(otel_provider_name="mine")
    made = await client.get_embeddings(["a", "b"], options={"model": "asked", "dimensions": 2})
    assert len(made) == 2
    assert dict(spans.one("embeddings asked").attributes) == {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.provider.name": "mine",
        "gen_ai.request.model": "asked",
        "gen_ai.response.model": "em",
        "gen_ai.usage.input_tokens": 3,
    }
    (tokens,) = points.of("gen_ai.client.token.usage")
    assert (tokens.sum, tokens.attributes["gen_ai.token.type"]) == (3, "input")
    assert points.of("gen_ai.client.operation.duration")[0].attributes["gen_ai.operation.name"] == "embeddings"


async def test_a_failing_embedding_call_fails_its_span_and_no_values_make_none(spans: Spans) -> None:
    client = TracedVectors()
    with raises(ValueError, "fail"):
        await client.get_embeddings(["fail"])
    assert spans.one("embeddings unknown").attributes["error.type"] == "ValueError"
    assert list(await client.get_embeddings([])) == []
    assert len(spans.names()) == client.calls == 1


async def test_a_plain_embedding_client_gets_one_span_a_call_also_where_it_asks_itself(spans: Spans) -> None:
    class Plain(BaseEmbeddingClient[str, list[float], Any]):
        async def get_embeddings(self, values: Any, *, options: Any = None) -> GeneratedEmbeddings[list[float], Any]:
            return GeneratedEmbeddings([Embedding([1.0], model="em") for _ in values])

    class InParts(Plain):
        OTEL_PROVIDER_NAME = "parts"

        async def get_embeddings(self, values: Any, *, options: Any = None) -> GeneratedEmbeddings[list[float], Any]:
            if len(values) == 1:
                return await super().get_embeddings(values, options=options)
            return GeneratedEmbeddings([(await self.get_embeddings([value]))[0] for value in values])

    await Plain().get_embeddings(["a"])
    await InParts().get_embeddings(["a", "b"])
    assert spans.names() == ["embeddings unknown", "embeddings unknown"]
    providers = [span.attributes["gen_ai.provider.name"] for span in spans.all()]
    assert providers == ["unknown", "parts"]
    assert list(await Plain().get_embeddings([])) == []
    assert len(spans.names()) == 2


async def test_an_embedding_client_with_spans_gets_no_second_one(spans: Spans) -> None:
    class Ours(BaseEmbeddingClient[str, list[float], Any]):
        async def get_embeddings(self, values: Any, *, options: Any = None) -> GeneratedEmbeddings[list[float], Any]:
            return GeneratedEmbeddings([Embedding([1.0]) for _ in values])

    class Twice(EmbeddingTelemetryLayer, Ours):
        pass

    await Twice(otel_provider_name="mine").get_embeddings(["a"])
    assert spans.names() == ["embeddings unknown"]
    assert spans.all()[0].attributes["gen_ai.provider.name"] == "mine"
