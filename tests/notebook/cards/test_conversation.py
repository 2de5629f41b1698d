"""Conversations in a cell: readable, escaped, calls folded, nothing loaded."""

from __future__ import annotations

import asyncio
import base64
import itertools
import re
from html.parser import HTMLParser
from typing import Any, get_args

import pandas as pd
import pytest

from agentbench import (
    Agent,
    AgentResponse,
    AgentSession,
    Call,
    ChatResponse,
    Content,
    Message,
    ScriptedChatClient,
    tool,
)
from agentbench._text.redact import line_preview
from agentbench.notebook import transcript
from agentbench.notebook.cards.conversation import approvals
from agentbench.notebook.cards.conversation.model import Part, turns_of
from agentbench.notebook.cards.conversation.views import response_bundle
from agentbench.notebook.look.prose import Render
from agentbench.orchestrations import AgentRequestInfoResponse, HandoffBuilder, SequentialBuilder
from tests.notebook.attacks import ATTACKS
from tests.parts.errors import raises

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

ALLOWED = {"div", "style", "p", "b", "details", "summary", "code", "pre", "span", "figure", "figcaption", "img"}
ATTRIBUTES = {"class", "title", "src", "alt", "href", "rel", "target", "start"}


class Reader(HTMLParser):
    """Reads as a browser does: elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.in_style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if not self.in_style:
            self.words += data


def call(name: str, call_id: str, **arguments: Any) -> Content:
    return Content.from_function_call(call_id, name, arguments=arguments)


def failure(result: str, exception: str, kind: str | None = None) -> Content:
    properties = None if kind is None else {"_exception_type": kind}
    return Content.from_function_result("c1", result=result, exception=exception, additional_properties=properties)


def answered() -> list[Message]:
    return [
        Message("user", ["How much rain?"]),
        Message("assistant", [call("rain", "c1", day="monday"), call("wind", "c2")], author_name="station"),
        Message(
            "tool",
            [
                Content.from_function_result("c1", result={"mm": 54}),
                Content.from_function_result("c2", result="Error: Function failed.", exception="broken"),
            ],
        ),
        Message("assistant", ["54 mm"], author_name="station"),
    ]


# ---------------------------------------------------------------------------------------------------------------- model


def test_a_call_and_its_result_are_one_part_of_the_turn_that_called() -> None:
    user, calls, last = turns_of(answered())
    assert user.parts == (Part("text", "How much rain?"),)
    arguments = ("arguments", '{\n  "day": "monday"\n}')
    error = "Error: Function failed. broken"
    assert calls.parts == (
        Part("call", 'rain(day="monday")', "→", '{"mm": 54}', (arguments, ("result", '{"mm": 54}'))),
        Part("call", "wind()", "✗", error, (("error", error),), failed=True),
    )
    assert (last.role, last.name, last.parts) == ("assistant", "station", (Part("text", "54 mm"),))


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (failure("Error: Function failed.", "'Ada'", "KeyError"), "Error: Function failed. KeyError: 'Ada'"),
        (failure("Error: Function failed.", "", "TimeoutError"), "Error: Function failed. TimeoutError"),
        (failure("Error: Function failed. Exception: 'Ada'", "'Ada'", "KeyError"), "… Exception: 'Ada' KeyError"),
        (failure('Error: Requested function "x" not found.', "not there"), 'Error: Requested function "x" not found.'),
        (failure("Error: Function failed.", "<b>bold</b>", "E"), "Error: Function failed. E: <b>"),
    ],
    ids=["type and text", "type alone", "text told already", "unknown tool", "markup"],
)
def test_a_tool_that_failed_shows_what_it_raised(result: Content, shown: str) -> None:
    messages = [Message("assistant", [call("rain", "c1")]), Message("tool", [result])]
    assert shown.removeprefix("…") in " ".join(Reader(transcript(messages).html).words.split())
    assert "<b>" not in transcript(messages).html


def test_an_approval_request_replaces_its_call_until_there_is_a_result() -> None:
    deleting = call("delete", "c1", path="notes")
    request = Content.from_function_approval_request("c1", deleting)
    asked = Message("assistant", [deleting, request])
    yes = Message("user", [request.to_function_approval_response(True)])
    no = Message("user", [request.to_function_approval_response(False)])
    arguments = (("arguments", '{\n  "path": "notes"\n}'),)
    shown = re.sub("<[^>]*>", "", response_bundle(AgentResponse(messages=[asked]))["text/html"])
    assert "? May it call" in shown  # also where a page removes styles
    (turn,) = turns_of([asked])
    assert turn.parts == (Part("ask", 'May it call delete(path="notes")?', "?", folded=arguments),)
    assert turns_of([asked, no])[1].parts == (Part("answer", 'Rejected: delete(path="notes")', "✗"),)
    done = Message("tool", [Content.from_function_result("c1", result="gone")])
    (turn,) = turns_of([asked, yes, done])
    assert [(part.kind, part.outcome) for part in turn.parts] == [("call", "gone")]


def test_every_kind_of_content_shows_something() -> None:
    contents = [
        Content.from_text_reasoning(text="hm"),
        Content.from_uri("https://example.org/a.png", media_type="image/png"),
        Content.from_data(b"x" * 3_000, "application/pdf"),
        Content.from_error(message="broken", error_code="7"),
        Content.from_usage({"input_token_count": 3}),
        Content.from_hosted_file("f1", name="report.pdf"),
        Content.from_hosted_vector_store("v1"),
        Content.from_oauth_consent_request("https://example.org/consent"),
        Content.from_shell_tool_call(call_id="s1", commands=["ls"]),
        Content.from_mcp_server_tool_call("m1", "search", server_name="docs", arguments={"q": "gull"}),
    ]
    assert [line[11:] for line in transcript([Message("assistant", contents)]).text.splitlines()] == [
        "(thinking) hm",
        "image/png: https://example.org/a.png",
        "application/pdf, 3 kB",
        "✗ Error 7: broken",
        "usage: input_token_count 3",
        "file report.pdf",
        "hosted vector store",
        "Consent is required at https://example.org/consent",
        "shell(['ls'])",
        'search(q="gull")',
    ]


async def test_a_table_that_a_tool_returns_is_a_table() -> None:
    @tool
    def rain() -> pd.DataFrame:
        return pd.DataFrame({"day": ["monday", "tuesday"], "mm": [3, 54]})

    agent = ScriptedChatClient([Call("rain", {}), "Done."]).as_agent(name="station", tools=[rain])
    shown = transcript(await agent.run("How much rain?"))
    assert shown.text.splitlines()[0] == "station  rain() → 2 rows, 2 columns: day, mm"
    assert "<pre>  day      mm\n  monday   3\n  tuesday  54</pre>" in shown.html


def test_secrets_among_arguments_and_results_are_masked() -> None:
    messages = [
        Message("assistant", [call("login", "c1", password="hunter2", user="ada")]),
        Message("tool", [Content.from_function_result("c1", result="ok")]),
    ]
    shown = transcript(messages)
    for text in (shown.text, shown.html):
        assert "hunter2" not in text
        assert "•••" in text


# ------------------------------------------------------------------------------------------------------------ approvals


def warden(*answers: Any) -> tuple[Any, list[str]]:
    sent: list[str] = []

    @tool(approval_mode="always_require")
    def warn(text: str) -> str:
        """Send a warning."""
        sent.append(text)
        return "sent"

    return ScriptedChatClient([*answers]).as_agent(name="warden", tools=[warn]), sent


async def test_the_answers_to_approval_requests_are_the_message_of_the_next_run() -> None:
    agent, sent = warden([Call("warn", {"text": "storm"}), Call("warn", {"text": "flood"})], "Done.")
    session = agent.create_session()
    shown = transcript(await agent.run("A storm is coming.", session=session))
    storm, flood = shown.forms
    assert "May it call warn?" in storm.text
    assert "text: storm" in storm.text
    with raises(ValueError, "0 of 2", "Approve", "Reject"):
        _ = shown.answer
    storm.press("approve")
    flood.press("reject")
    assert [form.state for form in shown.forms] == ["answered", "answered"]
    await agent.run(shown.answer, session=session)
    assert sent == ["storm"]
    assert transcript(session).forms == ()
    assert transcript(session)._ipython_display_ is None  # the conversation is the output of the cell


async def test_respond_is_called_once_with_all_approvals() -> None:
    agent, sent = warden([Call("warn", {"text": "storm"}), Call("warn", {"text": "flood"})], "Done.")
    session = agent.create_session()
    await agent.run("A storm is coming.", session=session)
    shown = transcript(session, respond=lambda answer: agent.run(answer, session=session))
    for form in shown.forms:
        assert await asyncio.to_thread(form.answer, True)
    assert sent == ["storm", "flood"]


def test_each_display_has_the_buttons(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[Any] = []
    monkeypatch.setattr(approvals, "show_in_cell", lambda view, **_: displayed.append(view))
    request = Content.from_function_approval_request("c1", call("warn", "c1"))
    shown = transcript([Message("assistant", [request])])
    for _ in range(2):
        assert shown._ipython_display_ is not None
        shown._ipython_display_()
    assert [shown.forms[0] in displayed[:2], shown.forms[0] in displayed[2:]] == [True, True]


async def test_a_run_that_fails_leaves_the_buttons() -> None:
    agent, _ = warden(Call("warn", {"text": "storm"}), RuntimeError("no network"))
    session = agent.create_session()
    shown = transcript(
        await agent.run("A storm is coming.", session=session),
        respond=lambda answer: agent.run(answer, session=session),
    )
    (form,) = shown.forms
    assert not await asyncio.to_thread(form.answer, True)
    assert "no network" in form.refusal


# ---------------------------------------------------------------------------------------------------------------- forms


def test_the_text_reads_like_a_play() -> None:
    assert transcript(answered()).text.splitlines() == [
        "user     How much rain?",
        'station  rain(day="monday") → {"mm": 54}',
        "         wind() ✗ Error: Function failed. broken",
        "station  54 mm",
    ]


def test_a_response_displays_model_tokens_and_pending_answers() -> None:
    request = Content.from_function_approval_request("c1", call("delete", "c1"))
    chat: ChatResponse[Any] = ChatResponse(
        messages=[Message("assistant", ["hi"])],
        model="m",
        finish_reason="length",
        usage_details={"input_token_count": 1200, "output_token_count": 30},
    )
    agent: AgentResponse[Any] = AgentResponse(messages=[Message("assistant", [request])])
    assert response_bundle(chat)["text/plain"].endswith("model m · 1,200 tokens in, 30 out · ended: length")
    assert response_bundle(agent)["text/plain"].endswith("waits for 1 answer, see the buttons of transcript(response)")


def test_only_the_latest_turns_are_displayed_and_the_others_counted() -> None:
    shown = transcript([Message("user", [f"line {n}"]) for n in range(100)], limit=2)
    assert shown.text.splitlines() == ["… 98 earlier", "user  line 98", "user  line 99"]
    assert "… 98 earlier" in Reader(shown.html).words


def test_a_picture_is_displayed_from_its_own_bytes_and_never_from_elsewhere() -> None:
    contents = [
        Content.from_data(PICTURE, "image/png"),
        Content.from_data(b"<svg onload='x()'/>", "image/svg+xml"),
        Content.from_uri("https://example.org/spy.png", media_type="image/png"),
    ]
    read = Reader(transcript([Message("user", contents)]).html)
    assert read.tags.count("img") == 1
    sources = [value for name, value in read.attributes if name == "src"]
    assert sources == ["data:image/png;base64," + base64.b64encode(PICTURE).decode()]


def test_foreign_text_is_never_markup() -> None:
    for attack, render in itertools.product(ATTACKS, get_args(Render)):
        request = Content.from_function_approval_request("c2", call(attack, "c2", **{attack: attack}))
        contents: list[Content | str] = [
            attack,
            Content.from_text_reasoning(text=attack),
            call(attack, "c1", **{attack: attack}),
            request,
            Content.from_error(message=attack, error_code=attack),
            Content.from_hosted_file(attack, name=attack),
            Content.from_uri(f"data:image/png;base64,{attack}"),
            Content.from_uri("https://example.org/x", media_type=attack),
        ]
        messages = [
            Message("assistant", contents, author_name=attack),
            Message("tool", [Content.from_function_result("c1", result=attack, exception=attack)]),
            Message(attack, [attack]),
        ]
        shown = transcript(messages, render=render)
        read = Reader(shown.html)
        extra = {"a", "ul", "ol", "li", "strong", "em", "h3", "h4", "h5", "h6"} if render == "markdown" else set()
        assert set(read.tags) <= ALLOWED | extra
        assert {name for name, _ in read.attributes} <= ATTRIBUTES
        for name, value in read.attributes:
            assert name != "src" or str(value).startswith("data:image/png;base64,")
            assert name != "href" or str(value).startswith(("http://", "https://"))
        assert "\x00" not in shown.text + shown.html
        assert "\u202e" not in shown.text + shown.html


# ------------------------------------------------------------------------------------------------------------ arguments


def test_values_without_messages_are_refused_with_what_is_expected() -> None:
    with raises(TypeError, "transcript()", "int"):
        transcript(3)
    with raises(TypeError, "transcript()", "str"):
        transcript("hello")
    with raises(ValueError, "plain", "markdown"):
        transcript([], render="html")  # type: ignore[arg-type]
    with raises(ValueError, "limit"):
        transcript([], limit=0)


async def test_a_review_and_a_handoff_are_in_the_order_in_which_they_were_said():
    def agent(name: str, *script: Any) -> Agent:
        client = ScriptedChatClient([*script])
        return Agent(client, name=name, description=name, require_per_service_call_history_persistence=True)

    reporter = agent("reporter", "Fog.", "Fog for nine hours.")
    paper = SequentialBuilder(participants=[reporter, agent("editor", "FOG")]).with_request_info(agents=[reporter])
    run = paper.build().start("Report.")
    await run.result()
    await run.respond(run.pending_requests[0], "For how long?")
    await run.result()
    await run.respond(run.pending_requests[0], AgentRequestInfoResponse.approve())
    await run.result()
    assert [(message.author_name or message.role, message.text) for message in transcript(run).messages] == [
        ("user", "Report."),
        ("reporter", "Fog."),
        ("user", "For how long?"),
        ("reporter", "Fog for nine hours."),
        ("user", "(Approve as it is)"),
        ("editor", "FOG"),
    ]
    desk = agent("desk", "Which order?", "Which order?", "Paid back.")
    office = HandoffBuilder(participants=[desk, agent("other")]).with_start_agent(desk).build().start("Money!")
    answers: list[Any] = ["What?", "Order 7.", []]
    for answer in answers:
        await office.result()
        await office.respond(office.pending_requests[0], answer)
    await office.result()
    assert [message.text for message in transcript(office).messages] == [
        *("Money!", "Which order?", "What?", "Which order?", "Order 7.", "Paid back.", "(no message)"),
    ]


async def test_a_call_that_was_approved_with_other_arguments_says_so_in_the_conversation_and_in_the_history() -> None:
    @tool(approval_mode="always_require")
    def print_paper(copies: int, api_key: str) -> str:
        return f"{copies} copies"

    wish = Call("print_paper", {"copies": 1000, "api_key": "sk-1"})
    agent, session = ScriptedChatClient([wish, "Done."]).as_agent(name="printer", tools=[print_paper]), AgentSession()
    asked = await agent.run("go", session=session)
    edited = {"copies": 50, "api_key": "sk-2"}
    (request,) = asked.user_input_requests
    answer = Message("user", [request.to_function_approval_response(True, arguments=edited)])
    response = await agent.run(answer, session=session)

    shown = str(transcript([Message("user", ["go"]), *asked.messages, answer, *response.messages]))
    assert "Approved with copies: 50, api_key: •••: print_paper(copies=50" in shown
    stored = str(transcript(session.state["in_memory"]["messages"]))
    assert "copies=1000" in stored
    assert "approved with copies: 50" in stored
    assert "sk-" not in shown + stored
    assert line_preview(answer.contents[0]).startswith("approved with copies: 50, api_key: •••: print_paper")
