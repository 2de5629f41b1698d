"""Values of Python's own types come back from a checkpoint as they were."""

from __future__ import annotations

import array
import calendar
import collections
import datetime
import decimal
import enum
import fractions
import http
import ipaddress
import pathlib
import plistlib
import re
import statistics
import subprocess
import sys
import time
import types
import urllib.parse
import uuid
import zoneinfo
from typing import Any

import pytest
from pydantic import AnyUrl, BaseModel, HttpUrl

from agentbench import Executor, InMemoryCheckpointStorage, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.serialization.json_text import from_json, to_json
from tests.ids import steady


class Mode(enum.Flag):
    READ = 1
    WRITE = 2


VALUES: list[Any] = [
    *map(ipaddress.ip_address, ("10.0.0.1", "::1", "fe80::1%eth0")),
    *map(ipaddress.ip_network, ("10.0.0.0/8", "2001:db8::/32")),
    *map(ipaddress.ip_interface, ("10.0.0.1/8", "2001:db8::1/32")),
    uuid.UUID(int=7),
    *map(decimal.Decimal, ("1.50", "-0", "Infinity", "1E+30")),
    fractions.Fraction(-2, 3),
    pathlib.Path("a/b"),
    pathlib.PurePosixPath("/a"),
    pathlib.PureWindowsPath("C:/a"),
    datetime.date(2026, 1, 2),
    datetime.time(3, 4, 5, 6),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    datetime.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    datetime.timedelta(days=-1, microseconds=5),
    datetime.timezone(datetime.timedelta(hours=2), "here"),
    zoneinfo.ZoneInfo("Europe/Berlin"),
    time.gmtime(0),
    re.compile("a+", re.IGNORECASE),
    re.compile(b"a+"),
    re.IGNORECASE | re.DOTALL,
    range(1, 9, 2),
    slice(1, None, 2),
    1 + 2j,
    b"\x00\xff",
    bytearray(b"ab"),
    memoryview(b"ab"),
    array.array("d", [1.5, 2.5]),
    array.array("i"),
    ...,
    (1, ("a", None)),
    frozenset({"a"}),
    collections.deque([1, 2], maxlen=3),
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(list, {"a": [1]}),
    collections.Counter("abca"),
    collections.ChainMap({"a": 1}, {"b": 2}),
    collections.UserDict(a=1),
    collections.UserList([1, 2]),
    collections.UserString("ab"),
    types.MappingProxyType({"a": 1}),
    types.SimpleNamespace(a=1, b=[2]),
    http.HTTPStatus.NOT_FOUND,
    calendar.MONDAY,
    Mode.READ | Mode.WRITE,
    urllib.parse.urlparse("https://example.org/a;b?c=d#e"),
    urllib.parse.urlsplit("https://example.org/a?c=d#e"),
    urllib.parse.urldefrag("https://example.org/a#e"),
    urllib.parse.urlsplit(b"https://example.org/a"),
    uuid.SafeUUID.unknown,
    statistics.NormalDist(1.5, 0.5),
    plistlib.UID(3),
    HttpUrl("https://example.org/a"),
    AnyUrl("redis://localhost/1"),
]


@pytest.mark.parametrize("value", VALUES, ids=steady)
def test_a_value_comes_back_equal_and_of_its_class(value: Any) -> None:
    found = from_json(to_json({"a": [value]}))["a"][0]
    assert type(found) is type(value)
    if isinstance(value, collections.UserDict | collections.ChainMap):
        assert dict(found) == dict(value)
    else:
        assert found == value or str(found) == str(value)
    assert to_json(found) == to_json(value)


def test_a_process_that_has_not_loaded_the_modules_reads_them_too() -> None:
    values = [value for value in VALUES if type(value).__module__ not in (__name__, "pydantic.networks")]
    program = "import sys; from agentbench.serialization.json_text import from_json as f, to_json as t; "
    program += "text = sys.stdin.read(); print(t(f(text)) == text)"
    ran = subprocess.run([sys.executable, "-c", program], input=to_json(values), capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


class Host(BaseModel):
    address: ipaddress.IPv4Address
    network: ipaddress.IPv6Network
    site: HttpUrl


class Block(Executor):
    @handler
    async def block(self, text: str, ctx: WorkflowContext) -> None:
        ctx.set_state("host", Host(address="10.0.0.1", network="2001:db8::/32", site="https://example.org"))  # type: ignore[arg-type]
        await ctx.request_info("block it?", bool)

    @response_handler
    async def answered(self, asked: str, answer: bool, ctx: WorkflowContext) -> None:
        """Gets no answer."""


async def test_a_model_with_such_fields_does_not_prevent_the_checkpoint_from_being_saved() -> None:
    storage = InMemoryCheckpointStorage()
    result = await WorkflowBuilder(Block(id="block"), name="w", checkpoint_storage=storage).build().run("x")
    saved = await storage.get_latest(workflow_name="w")
    assert result.warnings == []
    assert saved is not None
    assert saved.state["host"].address == ipaddress.ip_address("10.0.0.1")


@pytest.mark.parametrize(
    "text",
    [
        '{"__t__":"standard","v":["os.system","true"]}',
        '{"__t__":"standard","v":["ipaddress.IPv4Address",7]}',
        '{"__t__":"standard","v":["array.array",["d",1000000000]]}',
        '{"__t__":"namespace","v":[1]}',
    ],
)
def test_only_what_is_written_is_read(text: str) -> None:
    from agentbench.exceptions import WorkflowCheckpointException

    with pytest.raises(WorkflowCheckpointException):
        from_json(text)
