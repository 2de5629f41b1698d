"""`agentbench checkpoints`: what people see of what runs have saved, and what they can do with it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.cli import main
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage
from tests.tools.refresh_notebooks import ROOT

ATTACK = "\x1b]0;owned\x07\x1b[2Jsafe\u202egnp"


def checkpoint(chain: str, number: int, *, previous: str | None = None, **fields: Any) -> WorkflowCheckpoint:
    metadata: dict[str, Any] = {
        "seq": number,
        "source": "input" if number == 1 else "step",
        "run_id": f"run-of-{chain}",
    }
    if number > 1:
        metadata |= {"writers": ["plan", "write"]}
    return WorkflowCheckpoint(
        chain,
        "hash",
        checkpoint_id=f"{chain}-{number:04}",
        previous_checkpoint_id=previous,
        timestamp=f"2026-01-0{number}T10:00:00.000000+00:00",
        iteration_count=number - 1,
        metadata=metadata,
        **fields,
    )


def flow() -> list[WorkflowCheckpoint]:
    """A chain of three, the last of which asks a person."""
    waiting = {"plan": [WorkflowMessage("go on", "plan", "write")]}
    asked = {"request-1": WorkflowEvent.request_info("request-1", "review", {"text": "publish?"}, bool)}
    state = {"topic": "llamas", "conv": ["a"], "api_key": "sk-123", "login": {"password": "hunter2", "user": "me"}}
    later = {**state, "conv": ["a", "b" * 300], "api_key": "sk-456", "_executor_state": {"write": {"count": 1}}}
    return [
        checkpoint("flow", 1, messages=waiting),
        checkpoint("flow", 2, previous="flow-0001", state=state),
        checkpoint("flow", 3, previous="flow-0002", state=later, pending_request_info_events=asked),
    ]


def keep(path: Path, checkpoints: Sequence[WorkflowCheckpoint]) -> None:
    async def save() -> None:
        storage = FileCheckpointStorage(path)
        for each in checkpoints:
            await storage.save(each)
        storage.close()

    asyncio.run(save())


def kept(path: Path, chain: str = "flow") -> list[WorkflowCheckpoint]:
    async def load() -> list[WorkflowCheckpoint]:
        storage = FileCheckpointStorage(path)
        ids = await storage.list_checkpoint_ids(workflow_name=chain)
        loaded = [await storage.load(each) for each in ids]
        storage.close()
        return loaded

    return asyncio.run(load())


def as_json(checkpoints: Sequence[WorkflowCheckpoint]) -> list[str]:
    """Checkpoints in a form that is equal where they are; events are equal to nothing but themselves."""
    return [each.to_json() for each in checkpoints]


def ids_in(path: Path, chain: str = "flow") -> list[str]:
    return [each.checkpoint_id for each in kept(path, chain)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A storage with two chains."""
    path = tmp_path / "runs"
    keep(path, [*flow(), checkpoint("other", 1, state={"n": 1})])
    return path


class Shown:
    """Runs `agentbench checkpoints ARGUMENTS` in this process, and keeps what was to be seen."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.error = ""

    def __call__(self, *arguments: str | Path, status: int = 0) -> str:
        try:
            got = main(["checkpoints", *map(str, arguments)])
        except SystemExit as exit_:
            got = int(exit_.code or 0)
        out, self.error = self._capsys.readouterr()
        assert got == status, f"{out}\n{self.error}"
        assert "Traceback" not in self.error
        return out

    def failure(self, *arguments: str | Path) -> str:
        """The one line of an error."""
        assert self(*arguments, status=1) == ""
        (line,) = self.error.splitlines()
        assert line.startswith("agentbench: ")
        return line


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(capsys)


# ----------------------------------------------------------------------------------------------------------------- list


def test_list_tabulates_every_chain(folder: Path, shown: Shown) -> None:
    lines = shown("list", folder).splitlines()
    assert lines[0] == "flow: 3 checkpoints"
    assert lines[1].split() == [
        *("number", "id", "superstep", "source", "saved", "(UTC)", "messages", "requests", "size", "executors")
    ]
    assert lines[2].split()[:8] == ["1", "flow-0001", "0", "input", "2026-01-01", "10:00:00", "1", "0"]
    assert lines[4].split()[:8] == ["3", "flow-0003", "2", "step", "2026-01-03", "10:00:00", "0", "1"]
    assert lines[4].endswith("  plan, write")
    assert len({line.index("-01-0") for line in lines[2:5]}) == 1, "columns are aligned"
    assert lines[6] == "other: 1 checkpoint"


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), ["flow-0001", "flow-0002", "flow-0003", "other-0001"]),
        (("--workflow", "flow"), ["flow-0001", "flow-0002", "flow-0003"]),
        (("--limit", "1"), ["flow-0003", "other-0001"]),
        (("--run", "run-of-other"), ["other-0001"]),
        (("--workflow", "flow", "--limit", "2"), ["flow-0002", "flow-0003"]),
    ],
)
def test_list_chooses(options: Sequence[str], ids: list[str], folder: Path, shown: Shown) -> None:
    rows = json.loads(shown("list", folder, "--json", *options))
    assert [row["checkpoint_id"] for row in rows] == ids
    assert [each in shown("list", folder, *options) for each in ids] == [True] * len(ids)


def test_list_as_json_has_the_facts(folder: Path, shown: Shown) -> None:
    row = json.loads(shown("list", folder, "--json", "--workflow", "flow"))[-1]
    assert row.pop("size_bytes") > 0
    assert row == {
        "workflow_name": "flow",
        "checkpoint_id": "flow-0003",
        "previous_checkpoint_id": "flow-0002",
        "forked_from": None,
        "seq": 3,
        "superstep": 2,
        "source": "step",
        "timestamp": "2026-01-03T10:00:00.000000+00:00",
        "run_id": "run-of-flow",
        "graph_signature_hash": "hash",
        "messages": 0,
        "requests": 1,
        "writers": ["plan", "write"],
        "metadata": {},
    }


def tree(*checkpoints: tuple[int, int | None, str], chain: str = "flow") -> list[WorkflowCheckpoint]:
    """Checkpoints by number, number of the previous one, and source."""
    made = []
    for number, previous, source in checkpoints:
        each = checkpoint(chain, number, previous=None if previous is None else f"{chain}-{previous:04}")
        each.metadata["source"] = source
        if source in ("fork", "update"):
            each.metadata["forked_from"] = each.previous_checkpoint_id
        made.append(each)
    return made


def test_list_draws_chains_apart_and_branches_below_where_they_begin(shown: Shown, tmp_path: Path) -> None:
    step, fork = "step", "fork"
    flow = [(1, None, "input"), (2, 1, step), (3, 2, step), (4, 1, fork), (5, 1, "update"), (6, 4, step), (7, 6, fork)]
    keep(tmp_path, [*tree(*flow), *tree((1, None, "input"), chain="other")])
    assert shown("list", tmp_path, "--tree").splitlines() == [
        "flow: 7 checkpoints",
        "* flow-0001  superstep 0, input",
        "  + flow-0004  superstep 3, fork, from flow-0001",
        "  * flow-0006  superstep 5",
        "    + flow-0007  superstep 6, fork, from flow-0006",
        "  + flow-0005  superstep 4, update, from flow-0001",
        "* flow-0002  superstep 1",
        "* flow-0003  superstep 2",
        "",
        "other: 1 checkpoint",
        "* other-0001  superstep 0, input",
    ]


@pytest.mark.parametrize("form", [[], ["--json"], ["--tree"]])
def test_an_unknown_chain_is_an_error_that_lists_those_there_are(form: list[str], folder: Path, shown: Shown) -> None:
    line = shown.failure("list", folder, "--workflow", "nobody", *form)
    assert "There is no chain 'nobody' in " in line
    assert "Chains: 'flow', 'other'." in line


def damage(folder: Path, checkpoint_id: str) -> None:
    (file,) = folder.glob("flow-*.checkpoints")
    lines = file.read_bytes().splitlines(keepends=True)
    named = f'"key":["{checkpoint_id}"'.encode()
    file.write_bytes(b"".join([line.replace(b"}}", b"} ") if named in line else line for line in lines]))


def test_a_damaged_checkpoint_is_left_out_of_the_list_with_a_warning(
    folder: Path, shown: Shown, caplog: pytest.LogCaptureFixture
) -> None:
    damage(folder, "flow-0002")
    assert "flow-0001" in shown("list", folder)
    assert "flow-0002" in caplog.text
    assert "its line was damaged after it was saved" in caplog.text


# ----------------------------------------------------------------------------------------------------------------- show


def test_show_prints_what_a_checkpoint_is_and_holds(folder: Path, shown: Shown) -> None:
    lines = shown("show", folder, "flow-0003").splitlines()
    assert lines[13].startswith("  conv = ['a', 'bbb")
    assert len(lines[13]) < 120
    assert lines == [
        "checkpoint  flow-0003",
        "chain       flow, number 3",
        "superstep   2, plan, write",
        "saved       2026-01-03T10:00:00.000000+00:00, source step",
        "run         run-of-flow",
        "follows     flow-0002",
        "graph       hash",
        "",
        "requests (1)",
        "  request-1 of review = {'text': 'publish?'}",
        "",
        "state (4)",
        "  topic = 'llamas'",
        lines[13],
        "  api_key = •••",
        "  login = {'password': •••, 'user': 'me'}",
        "",
        "executors (1)",
        "  write = {'count': 1}",
    ]
    assert "  plan -> write = 'go on'" in shown("show", folder, "flow-0001")


@pytest.mark.parametrize("form", [[], ["--full"], ["--json"]])
def test_show_masks_secrets_by_default(form: list[str], folder: Path, shown: Shown) -> None:
    hidden = shown("show", folder, "flow-0003", *form)
    assert "sk-456" not in hidden
    assert "hunter2" not in hidden
    told = shown("show", folder, "flow-0003", "--show-secrets", *form)
    assert "sk-456" in told
    assert "hunter2" in told


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("flow-0002", "flow-0002"),
        ("o", "other-0001"),
        ("other-0…", "other-0001"),
        ("latest", "flow-0003"),
        ("latest:other", "other-0001"),
        ("flow@2", "flow-0002"),
    ],
)
def test_a_checkpoint_is_named_in_many_ways(reference: str, found: str, folder: Path, shown: Shown) -> None:
    assert shown("show", folder, reference).splitlines()[0] == f"checkpoint  {found}"


def test_what_names_none_or_several_is_an_error(folder: Path, shown: Shown) -> None:
    for reference in ("nobody", "latest:nobody", "flow@9", "…"):
        assert "There is no checkpoint " in shown.failure("show", folder, reference)
    line = shown.failure("show", folder, "flow-")
    assert "'flow-' matches 3 checkpoints: flow-0001 ('flow'), flow-0002" in line


# ----------------------------------------------------------------------------------------------------------------- diff


def test_diff_shows_what_differs(folder: Path, shown: Shown) -> None:
    lines = shown("diff", folder, "flow@2", "flow@3").splitlines()
    assert lines[0] == "CheckpointDiff: 3 added, 2 changed"
    assert lines[3:] == [
        "~ iteration_count: 1 -> 2",
        f"+ state.conv[1] = '{'b' * 80}'…",
        "~ state.api_key: ••• -> •••",
        "+ executors.write = {'count': 1}",
        "+ requests['request-1'] = {'text': 'publish?'}",
    ]
    assert "~ state.api_key: 'sk-123' -> 'sk-456'" in shown("diff", folder, "flow@2", "flow@3", "--show-secrets")


def test_diff_as_json(folder: Path, shown: Shown) -> None:
    found = json.loads(shown("diff", folder, "flow@2", "flow@3", "--json"))
    assert (found["before"]["checkpoint_id"], found["after"]["checkpoint_id"]) == ("flow-0002", "flow-0003")
    by_path = {change["path"]: change for change in found["changes"]}
    assert by_path["iteration_count"] == {"path": "iteration_count", "op": "changed", "before": 1, "after": 2}
    assert by_path["state.api_key"]["before"] == "•••"
    assert by_path["state.conv[1]"]["after"] == "b" * 300


def test_diff_exits_with_one_only_by_option(folder: Path, shown: Shown) -> None:
    shown("diff", folder, "flow@2", "flow@3", status=0)
    shown("diff", folder, "flow@2", "flow@3", "--exit-code", status=1)
    assert "no difference" in shown("diff", folder, "flow@2", "flow@2", "--exit-code", status=0)


# ----------------------------------------------------------------------------------------------------------------- fork


def test_fork_saves_an_edited_sibling_and_prints_its_id(folder: Path, shown: Shown) -> None:
    before = kept(folder)
    printed = shown("fork", folder, "flow@2", "--set", 'topic="alpacas"', "--set", "limits=[1, 2]")
    assert "number 4 of chain 'flow'" in shown.error
    *others, new = kept(folder)
    assert as_json(others) == as_json(before)
    assert new.checkpoint_id == printed.strip()
    assert new.state == {**before[1].state, "topic": "alpacas", "limits": [1, 2]}
    assert new.metadata["forked_from"] == "flow-0002"


def test_fork_may_go_to_a_chain_of_its_own(folder: Path, shown: Shown) -> None:
    shown("fork", folder, "flow@2", "--to", "copy", "--with-history")
    assert [each.iteration_count for each in kept(folder, "copy")] == [0, 1, 1]


@pytest.mark.parametrize("setting", ["topic", "=1", "topic=llamas", "topic={"])
def test_a_setting_that_is_none_is_refused(setting: str, folder: Path, shown: Shown) -> None:
    shown("fork", folder, "flow@2", "--set", setting, status=2)
    assert "expected KEY=JSON" in shown.error
    assert len(kept(folder)) == 3


# ---------------------------------------------------------------------------------------------------------------- prune


def test_prune_keeps_the_newest(folder: Path, shown: Shown) -> None:
    assert "Removed 2 checkpoints." in shown("prune", folder, "--workflow", "flow", "--keep", "1", "--yes")
    assert ids_in(folder) == ["flow-0003"]
    assert ids_in(folder, "other") == ["other-0001"]
    assert "Nothing to remove" in shown("prune", folder, "--workflow", "flow", "--keep", "1", "--yes")


def test_a_dry_run_removes_nothing(folder: Path, shown: Shown) -> None:
    told = shown("prune", folder, "--workflow", "flow", "--keep", "2", "--dry-run")
    assert told.startswith("Would remove 1 of 3 checkpoints of chain 'flow':")
    assert "flow-0001" in told
    assert "flow-0002" not in told
    assert len(ids_in(folder)) == 3


@pytest.mark.parametrize(("typed", "left"), [("n\n", 3), ("perhaps\ny\n", 1), ("", 3)])
def test_prune_asks_at_a_terminal(
    typed: str, left: int, folder: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(typed.splitlines())

    def answer(question: str) -> str:
        print(question)
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", answer)
    told = shown("prune", folder, "--workflow", "flow", "--keep", "1")
    assert told.startswith("Remove 2 of 3 checkpoints of chain 'flow', permanently? [y/n]")
    assert len(ids_in(folder)) == left


def test_prune_needs_a_chain_that_is_there_and_a_count(folder: Path, shown: Shown) -> None:
    line = shown.failure("prune", folder, "--workflow", "flo", "--keep", "1", "--yes")
    assert "There is no chain 'flo' in " in line
    assert "Chains: 'flow', 'other'." in line
    for count in ("0", "-1", "many"):
        shown("prune", folder, "--workflow", "flow", f"--keep={count}", status=2)
        assert f"'{count}' is not a count" in shown.error
    shown("prune", folder, "--workflow", "flow", status=2)
    assert len(ids_in(folder)) == 3


# --------------------------------------------------------------------------------------------------------------- export


_NOTEBOOK = """
import sys
from dataclasses import dataclass
from enum import Enum
from agentbench import Executor, FileCheckpointStorage, WorkflowBuilder, WorkflowContext, run_sync
from agentbench import executor, handler, response_handler
class Color(Enum): RED = 1
@dataclass
class Car: name: str; color: Color = Color.RED
@executor
async def a(text: str, ctx: WorkflowContext[Car]) -> None: await ctx.send_message(Car(text))
class Ask(Executor):
    @handler
    async def ask(self, car: Car, ctx: WorkflowContext) -> None:
        ctx.set_state("cars", {"first": car, "kind": Car})
        await ctx.request_info(car, Car)
    @response_handler
    async def answered(self, asked: Car, answer: Car, ctx: WorkflowContext) -> None: ...
b = Ask(id="b")
storage = FileCheckpointStorage(sys.argv[1])
if sys.argv[2] == "write":
    run_sync(WorkflowBuilder(name="cars", start_executor=a, checkpoint_storage=storage).add_edge(a, b).build().run("x"))
last = run_sync(storage.get_latest(workflow_name="cars"))
(request,) = last.pending_request_info_events.values()
print(last.state["cars"] == {"first": Car("x"), "kind": Car}, request.data == Car("x"), request.response_type is Car)
"""


def test_export_copies_instances_of_classes_that_only_a_notebook_knows(tmp_path: Path, shown: Shown) -> None:
    def notebook(folder: Path, task: str) -> str:
        command = [sys.executable, "-c", _NOTEBOOK, str(folder), task]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    notebook(tmp_path / "a", "write")
    assert "Car" in shown("export", tmp_path / "a", "--all")
    shown("export", tmp_path / "a", "--all", "--to", tmp_path / "b")
    assert notebook(tmp_path / "b", "read") == "True True True\n"


def test_export_prints_a_line_per_checkpoint(folder: Path, shown: Shown) -> None:
    lines = shown("export", folder, "--workflow", "flow").splitlines()
    assert as_json([WorkflowCheckpoint.from_json(line) for line in lines]) == as_json(kept(folder))
    assert WorkflowCheckpoint.from_json(shown("export", folder, "latest:other")).checkpoint_id == "other-0001"
    assert len(shown("export", folder, "--all").splitlines()) == 4


@pytest.fixture(params=["folder", "SQLite", "PostgreSQL", "Redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of another storage, in which nothing is."""
    if request.param in ("SQLite", "PostgreSQL"):
        pytest.importorskip("sqlalchemy")
    if request.param == "PostgreSQL":
        pytest.importorskip("psycopg")
        return str(request.getfixturevalue("postgres_url"))
    if request.param == "Redis":
        pytest.importorskip("redis")
        return str(request.getfixturevalue("redis_url"))
    return str(tmp_path / ("new" if request.param == "folder" else "new.db"))


def test_chains_move_to_another_storage_and_the_move_can_be_made_again(
    place: str, folder: Path, shown: Shown, tmp_path: Path
) -> None:
    back = tmp_path / "back"
    shown("export", folder, "flow-0001", "--to", place)
    for _ in range(2):
        shown("export", folder, "--all", "--to", place)
        assert "4 checkpoints copied to" in shown.error
    shown("export", place, "--all", "--to", back)
    for chain in ("flow", "other"):
        assert as_json(kept(back, chain)) == as_json(kept(folder, chain))


def test_a_chain_of_the_same_name_is_not_mixed_with_another(folder: Path, shown: Shown, tmp_path: Path) -> None:
    keep(tmp_path / "taken", [checkpoint("other", 1, state={}), checkpoint("other", 2)])
    assert "already has a chain 'other'" in shown.failure("export", folder, "--all", "--to", tmp_path / "taken")
    assert ids_in(tmp_path / "taken", "flow") == []


# ------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize("command", [["list"], ["show", "latest"], ["prune", "--workflow", "x", "--keep", "1"]])
def test_an_address_where_nothing_is_stays_empty(command: list[str], shown: Shown, tmp_path: Path) -> None:
    name, *rest = command
    for absent in ("absent", "absent.db"):
        assert "does not exist, so it has no checkpoints" in shown.failure(name, tmp_path / absent, *rest)
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_none_is_an_error_without_its_password(shown: Shown) -> None:
    pytest.importorskip("redis")
    line = shown.failure("list", "redis://me:hunter2@localhost:port/0")
    assert "hunter2" not in line
    assert "is not the address of a checkpoint storage" in line


def test_a_damaged_checkpoint_is_an_error_of_one_line(folder: Path, shown: Shown) -> None:
    damage(folder, "flow-0003")
    assert "flow-0003" in shown.failure("show", folder, "flow-0003")


def test_what_models_wrote_does_nothing_to_the_terminal(tmp_path: Path, shown: Shown) -> None:
    hostile = WorkflowCheckpoint(
        ATTACK,
        ATTACK,
        checkpoint_id="cp-1",
        timestamp=ATTACK,
        state={ATTACK: ATTACK, "x": {ATTACK: [ATTACK]}, "_executor_state": {ATTACK: {"a": ATTACK}}},
        messages={ATTACK: [WorkflowMessage(ATTACK, ATTACK)]},
        metadata={"seq": 1, "source": ATTACK, "run_id": ATTACK, "writers": [ATTACK], "tags": ATTACK, ATTACK: 1},
    )
    keep(tmp_path, [hostile, WorkflowCheckpoint(ATTACK, "", checkpoint_id="cp-2", metadata={"seq": 2})])
    outputs = [
        shown("list", tmp_path),
        shown("list", tmp_path, "--tree"),
        shown("list", tmp_path, "--json"),
        shown("show", tmp_path, "cp-1"),
        shown("show", tmp_path, "cp-1", "--full"),
        shown("show", tmp_path, "cp-1", "--json"),
        shown("diff", tmp_path, "cp-1", "cp-2"),
        shown("diff", tmp_path, "cp-1", "cp-2", "--json"),
        shown("prune", tmp_path, "--workflow", ATTACK, "--keep", "1", "--dry-run"),
        shown("fork", tmp_path, "cp-1", "--to", ATTACK) + shown.error,
        shown("export", tmp_path, "--all"),
        shown.failure("show", tmp_path, ATTACK),
        shown.failure("prune", tmp_path, "--workflow", f"{ATTACK}?", "--keep", "1"),
    ]
    for output in outputs:
        assert not {"\x1b", "\x07", "\u202e"} & set(output)
    assert "\\u001b" in outputs[0]


# ------------------------------------------------------------------------------------------------ programs of their own

SCRIPT = """
import asyncio, sys
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from agentbench import FileCheckpointStorage, WorkflowCheckpoint, WorkflowEvent

@dataclass
class Note:
    text: str

class Kind(Enum):
    SHORT = 1

class Size(NamedTuple):
    words: int

async def save():
    storage = FileCheckpointStorage("notes")
    for name, text in (("cp", "llamas"), ("other", "alpacas")):
        state = {"note": Note(text), "kind": Kind.SHORT, "sizes": [Size(1)], "type": Note}
        requests = {"r": WorkflowEvent.request_info("r", "a", Note("?"), Note)}
        await storage.save(WorkflowCheckpoint(
            "flow", "hash", checkpoint_id=name, state=state, pending_request_info_events=requests
        ))
    storage.close()

if __name__ == "__main__":
    asyncio.run(save())
"""


def program(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_instances_of_unknown_classes_are_plain_values_until_the_script_is_imported(
    tmp_path: Path,
) -> None:
    (tmp_path / "save_notes.py").write_text(SCRIPT, encoding="utf-8")
    assert program("save_notes.py", cwd=tmp_path).returncode == 0
    show = ("-m", "agentbench", "checkpoints", "show", "notes", "cp")
    unknown = program(*show, cwd=tmp_path)
    assert unknown.returncode == 0
    assert "  note = {'__main__.Note': {'text': 'llamas'}}" in unknown.stdout
    assert "  kind = {'__main__.Kind': 'SHORT'}" in unknown.stdout
    assert "  sizes = [{'__main__.Size': {'words': 1}}]" in unknown.stdout
    assert "__main__.Kind, __main__.Note, __main__.Size. Use --import" in unknown.stderr
    diff = program("-m", "agentbench", "checkpoints", "diff", "notes", "cp", "other", cwd=tmp_path)
    assert diff.returncode == 0
    assert "llamas" in diff.stdout
    fork = program("-m", "agentbench", "checkpoints", "fork", "notes", "cp", cwd=tmp_path)
    assert fork.returncode == 1, "plain values are for the eye: nothing is saved in their form"
    assert "--import SCRIPT.py" in fork.stderr
    known = program(*show, "--import", "save_notes.py", cwd=tmp_path)
    assert (known.returncode, known.stderr) == (0, "")
    assert "  note = Note(text='llamas')" in known.stdout
    copied = program(
        *("-m", "agentbench", "checkpoints", "export", "notes", "cp", "--import", "save_notes.py"), cwd=tmp_path
    )
    assert "__main__.Note" in copied.stdout, "it is still a class of the script"


@pytest.mark.parametrize("name", ["no_such_module", "no_such_script.py", "book.ipynb", "./book.ipynb", ""])
def test_a_module_that_cannot_be_imported_is_an_error(name: str, folder: Path) -> None:
    done = program("-m", "agentbench", "checkpoints", "show", "runs", "latest", "--import", name, cwd=folder.parent)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"agentbench: --import {name}: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="there is no head")
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    keep(tmp_path / "runs", [checkpoint("flow", 1, state={"text": ["x" * 100] * 10_000})])
    command = f"{sys.executable} -m agentbench checkpoints show runs latest --full | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("checkpoint  flow-0001")


def test_nothing_of_the_notebook_extra_is_needed(folder: Path) -> None:
    code = (
        "import sys; from agentbench.cli import main\n"
        "for name in ('pandas', 'numpy', 'graphviz', 'ipywidgets', 'anywidget', 'IPython', 'traitlets'):\n"
        "    sys.modules[name] = None\n"
        "sys.exit(max(main(['checkpoints', *command.split()]) for command in sys.argv[1:]))"
    )
    commands = ["list runs", "list runs --tree", "show runs latest", "show runs latest --full"]
    commands += ["show runs latest --json", "diff runs flow@1 flow@3", "diff runs flow@1 flow@3 --json"]
    commands += ["fork runs latest", "export runs --all"]
    done = program("-c", code, *commands, cwd=folder.parent)
    assert (done.returncode, "Error" in done.stderr) == (0, False), done.stderr
