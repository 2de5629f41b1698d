from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, get_args

import pytest

from agentbench.agents.model.embeddings import (
    BaseEmbeddingClient,
    Embedding,
    EmbeddingGenerationOptions,
    GeneratedEmbeddings,
    SupportsGetEmbeddings,
)
from agentbench.agents.telemetry.layers import EmbeddingTelemetryLayer
from agentbench.exceptions import ChatClientException
from tests.parts.errors import raises

Vectors = GeneratedEmbeddings[list[float], EmbeddingGenerationOptions]


class Lengths(BaseEmbeddingClient[str, list[float], EmbeddingGenerationOptions]):
    NEEDS_NETWORK = True

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.calls = 0

    async def get_embeddings(
        self, values: Sequence[str], *, options: EmbeddingGenerationOptions | None = None
    ) -> Vectors:
        self.calls += 1
        return GeneratedEmbeddings([Embedding([float(len(value))]) for value in values], options=options)


async def test_values_get_embeddings_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTBENCH_OFFLINE")
    found = await Lengths().get_embeddings(["a", "bcd"], options={"dimensions": 1})

    assert [embedding.vector for embedding in found] == [[1.0], [3.0]]
    assert found.options == {"dimensions": 1}


async def test_no_values_give_an_empty_list_without_a_call() -> None:
    client = Lengths()

    found = await client.get_embeddings([], options={"model": "m"})

    assert found == []
    assert isinstance(found, GeneratedEmbeddings)
    assert found.options == {"model": "m"}
    assert client.calls == 0


async def test_a_client_that_needs_the_network_refuses_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")
    client = Lengths()

    with raises(ChatClientException, "AGENTBENCH_OFFLINE"):
        await client.get_embeddings(["a"])

    assert client.calls == 0


def test_dimensions_are_by_default_the_length() -> None:
    assert Embedding([1.0, 2.0]).dimensions == 2
    assert Embedding([1.0, 2.0], dimensions=7).dimensions == 7
    assert Embedding(b"opaque", dimensions=None).dimensions == 6
    assert Embedding(object()).dimensions is None
    assert Embedding("opaque").dimensions is None
    assert repr(Embedding([1.0], model="m")) == "Embedding(dimensions=1, model='m')"


def test_a_slice_keeps_order_and_options() -> None:
    found: Vectors = GeneratedEmbeddings(
        [Embedding([float(n)]) for n in range(4)], options={"model": "m"}, usage={"input_token_count": 9}
    )

    part = found[1:3]

    assert [embedding.vector for embedding in part] == [[1.0], [2.0]]
    assert (part.options, part.usage) == ({"model": "m"}, None)
    assert found[0].vector == [0.0]
    assert repr(part).startswith("GeneratedEmbeddings([Embedding(dimensions=1)")


def test_brackets_may_name_fewer_types_than_there_are() -> None:
    options = TypeVar("options")
    whole = (str, list[float], EmbeddingGenerationOptions)
    cases: list[Any] = [BaseEmbeddingClient, SupportsGetEmbeddings]
    for generic in cases:
        assert get_args(generic[str]) == get_args(generic[str, list[float]]) == get_args(generic[whole]) == whole

    class Generic1(EmbeddingTelemetryLayer[str, list[float], options], Lengths): ...

    class Bytes(BaseEmbeddingClient[bytes]):
        async def get_embeddings(self, values: Any, *, options: Any = None) -> Any:
            return GeneratedEmbeddings()

    assert isinstance(Generic1[EmbeddingGenerationOptions](), SupportsGetEmbeddings)
    assert isinstance(Bytes(), SupportsGetEmbeddings)
