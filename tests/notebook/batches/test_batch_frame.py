"""`batch_frame`: the table of a batch, its dtypes, repeated inputs and expanded fields."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import pytest

from agentbench.batch.rows import BatchRow, RowError, RowStatus
from agentbench.notebook.batches.frame import batch_frame
from tests.parts.batches import FakeBatch, many_rows

KINDS = {
    "key": "string",
    "position": "UInt64",
    "input": "object",
    "status": "category",
    "output": "object",
    "error_type": "category",
    "error_message": "string",
    "error_location": "string",
    "attempts": "UInt64",
    "supersteps": "UInt64",
    "path": "category",
    "tokens_in": "UInt64",
    "tokens_out": "UInt64",
    "cost": "Float64",
    "started": "datetime64[ns, UTC]",
    "seconds": "Float64",
    "queued_seconds": "Float64",
    "run_id": "string",
    "checkpoint_id": "string",
    "graph_hash": "category",
    "worker": "category",
    "duplicate_of": "UInt64",
}


@pytest.mark.parametrize("count", [0, 1, 30])
def test_the_columns_have_the_same_dtypes_whether_or_not_there_are_rows(count: int):
    assert batch_frame(FakeBatch(many_rows(count))).dtypes.astype(str).to_dict() == KINDS


def test_errors_times_and_counts_are_values_of_their_column():
    frame = batch_frame(FakeBatch(many_rows(30))).set_index("key")
    failed = frame.loc["row-00003"]
    assert (failed["error_type"], failed["error_location"]) == ("TimeoutError", "check, superstep 1")
    assert frame.loc["row-00001", "started"] == pd.Timestamp("2023-11-14 22:13:21", tz="UTC")
    assert frame["tokens_in"].sum() == 30 * 100 + sum(range(30))
    assert frame["error_type"].isna().sum() == 27


def test_a_repeated_input_repeats_the_row_of_its_result_at_its_position():
    rows = [BatchRow("a", 0, "x", RowStatus.FINISHED, 1), BatchRow("b", 2, "y", RowStatus.FAILED)]
    frame = batch_frame(FakeBatch(rows, repeats={1: "a", 3: "b"}))
    assert frame["key"].tolist() == ["a", "a", "b", "b"]
    assert frame["position"].tolist() == [0, 1, 2, 3]
    assert frame["duplicate_of"].tolist() == [pd.NA, 0, pd.NA, 2]
    assert batch_frame(FakeBatch(rows, repeats={1: "a", 3: "b"}), status="failed")["position"].tolist() == [2, 3]


@dataclass
class Verdict:
    word: str
    stars: int


def test_fields_become_columns_with_dtypes_of_their_own_and_secrets_are_masked():
    rows = [replace(row, output=Verdict("good", row.position) if row.output else None) for row in many_rows(8)]
    frame = batch_frame(FakeBatch(rows), expand=["input", "output"])
    assert "input" not in frame
    assert frame.dtypes.astype(str)[["input.text", "input.stars", "output.word", "output.stars"]].tolist() == [
        "string",
        "Int64",
        "string",
        "Int64",
    ]
    assert frame["input.api_key"].unique().tolist() == ["•••"]
    assert frame["output.stars"].tolist()[:4] == [0, 1, 2, pd.NA]


def test_values_without_fields_stay_in_their_column_when_it_is_expanded():
    rows = [BatchRow("a", 0, {"n": 1}), BatchRow("b", 1, "text"), BatchRow("c", 2, {"n": [1, 2]})]
    frame = batch_frame(FakeBatch(rows), expand="input")
    assert frame["input"].tolist() == [{"n": 1}, "text", {"n": [1, 2]}]
    assert frame["input.n"].tolist() == [1, None, [1, 2]]


def test_secrets_of_inputs_outputs_and_errors_are_masked():
    error = RowError("ValueError", "refused: api_key=sk-planted")
    rows = [BatchRow("a", 0, {"api_key": "sk-planted"}, RowStatus.FAILED, {"password": "sk-planted"}, error)]
    assert "sk-planted" not in batch_frame(FakeBatch(rows)).to_json(default_handler=str, date_format="iso")


def test_another_column_cannot_be_expanded():
    with pytest.raises(ValueError, match="'path' has no fields"):
        batch_frame(FakeBatch(), expand=["path"])
