"""Clients of model services in Pyodide: `calling_models.py` runs there, against a server on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.lite.pyodide_runtime import MissingRuntimeError, fetch_runtime
from tests.lite.test_in_node import OPTIONS, PATIENCE_S, ROOT
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Gate, OpenAIServer, reply, stream


def test_models_are_called_by_fetch(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    try:
        cache = getattr(pytestconfig, "cache", None)
        runtime = fetch_runtime(Path(cache.mkdir("lite")) if cache else tmp_path)
    except MissingRuntimeError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"there is no Pyodide here: {error}")
    with OpenAIServer() as server:
        held, request = Gate(), Gate()  # the stream goes on when the next request has come
        request.reached.add_done_callback(lambda _: held.open())
        request.reached.add_done_callback(lambda _: request.open())
        second = reply(wire.completion())
        second.parts = (request, *second.parts)
        server.answer(reply(wire.completion("Grüße aus Bergen")))
        server.answer(stream(wire.chunk("Hel"), held, wire.chunk("lo", finish="stop")), second)
        server.answer(reply(wire.error("No key sk-nobody-reads-this"), 401), reply(wire.error(), 429, retry_after="3"))
        left = [server.answer(stream(Gate())) for _ in range(3)]
        left.append(server.answer(stream(wire.chunk("one"), Gate())))
        places = (runtime.pyodide, runtime.packages, ROOT, tmp_path)
        command: list[str | Path] = [runtime.node, Path(__file__).with_name("run_tests.mjs"), *places, *OPTIONS]
        done = subprocess.run(
            [*command, "tests/lite/calling_models.py"],
            env={**os.environ, "AGENTBENCH_TEST_SERVICE": server.url},
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5000:]
        for answer in left:
            answer.closed_by_client.result(PATIENCE_S)
    sent = server.requests[0].headers
    assert sent["authorization"] == "Bearer sk-nobody-reads-this"
    assert not [name for name in sent if name.startswith("x-stainless")]  # a service would have to allow them
