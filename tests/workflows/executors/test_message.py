import pytest

from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import MessageType, WorkflowMessage
from tests.parts.errors import raises


def test_the_single_trace_context_and_span_are_the_first_of_several():
    message = WorkflowMessage(1, "a", trace_contexts=[{"traceparent": "x"}, {}], source_span_ids=["s1", "s2"])
    assert message.trace_context == {"traceparent": "x"}
    assert message.source_span_id == "s1"


def test_to_dict_names_every_field_and_keeps_the_data_itself():
    data = {"result": 42}
    request = WorkflowEvent.request_info("r", "a", "question", str)
    written = WorkflowMessage(data, "a", "b", MessageType.RESPONSE, [{}], ["s"], request).to_dict()
    assert written == {
        "data": data,
        "source_id": "a",
        "target_id": "b",
        "type": "response",
        "trace_contexts": [{}],
        "source_span_ids": ["s"],
        "original_request_info_event": request,
    }
    assert written["data"] is data


@pytest.mark.parametrize(
    "message",
    [
        WorkflowMessage(0, "a"),
        WorkflowMessage(
            [1], "a", "b", MessageType.RESPONSE, [{"k": "v"}], ["s"], WorkflowEvent.request_info("r", "a", 1, int)
        ),
    ],
    ids=["plain", "every field"],
)
def test_from_dict_reads_back_what_to_dict_wrote(message):
    assert WorkflowMessage.from_dict(message.to_dict()) == message


def test_from_dict_refuses_an_unknown_type():
    with raises(ValueError, "telegram"):
        WorkflowMessage.from_dict({"data": 1, "source_id": "a", "type": "telegram"})


def test_a_message_shows_only_what_is_set():
    assert repr(WorkflowMessage("data", "up")) == "WorkflowMessage('data', source_id='up')"
    assert repr(WorkflowMessage(1, "a", "b", MessageType.RESPONSE, source_span_ids=["s"])) == (
        "WorkflowMessage(1, source_id='a', target_id='b', type='response', source_span_ids=['s'])"
    )
