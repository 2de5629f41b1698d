"""`run.keep_as_test()`: writes a test that repeats a run and compares what it does."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentbench._bridge import run_sync
from agentbench._display import shorten
from agentbench._secrets import is_secret_name
from agentbench.agents.clients.cassette.request import SecretFinder
from agentbench.exceptions import KeepTestError
from agentbench.revisions.kept_tests.cells import source_of_names
from agentbench.revisions.kept_tests.facts import ASSERTED, Replayed, facts_of, question_of, windows_of
from agentbench.revisions.kept_tests.literals import Literals, expected_source
from agentbench.revisions.kept_tests.model_calls import recording_of
from agentbench.revisions.kept_tests.origin import cells_of_notebook, find_origin
from agentbench.revisions.redo import redo
from agentbench.serialization.plain import are_equal

if TYPE_CHECKING:
    from agentbench.workflows.run.run import WorkflowRun

_INDENT: Final = "    "
_SHORTEST_SECRET: Final = 6
_PASSWORD: Final = re.compile(r"://[^/\s:@]+:[^/\s@]+@")
_TOKEN: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|(?:gh[a-z]|github_pat)_\w{20,}|xox[a-z]-[\w-]{10,}|AKIA[A-Z0-9]{16,}|AIza[\w-]{30,})"
)
"""How the keys of well-known services look."""
_LOOKUPS: Final = ("get", "getenv", "setdefault", "setenv", "putenv")
"""Functions whose arguments are a name and its value."""


def keep_as_test(run: WorkflowRun, path: str | Path, workflow: str | None = None, *, overwrite: bool = False) -> Path:
    """Write the test, and its cassette if the run called a model; see `WorkflowRun.keep_as_test`."""
    path = Path(path)
    if path.suffix not in (".py", ".ipynb"):
        msg = f"The test would be written to {path}; expected a name that ends in .py or .ipynb."
        raise KeepTestError(msg)
    if path.suffix == ".py" and not (path.name.startswith("test_") and path.stem.isidentifier()):
        msg = f"pytest would not find {path.name}; expected a name such as test_refund.py."
        raise KeepTestError(msg)
    if run.started_from is not None:
        run = run_sync(_from_its_input(run))
    recording = recording_of(run)
    cassette = path.with_suffix(".jsonl") if recording is not None else None
    taken = [each for each in (cassette, path) if each is not None and each.exists()]
    if path.suffix == ".ipynb":  # each cell has a recording of its own
        names = (path.with_name(f"{path.stem}{number}.jsonl") for number in ("", *(f"-{n}" for n in range(2, 1000))))
        cassette = next(name for name in names if not name.exists()) if recording is not None else None
    elif taken and not overwrite:
        msg = f"{taken[0]} exists. Choose another name, or pass overwrite=True to replace it."
        raise KeepTestError(msg)
    header, body = _parts(run, path, workflow, cassette)
    text = _module(path, header, body) if path.suffix == ".py" else _notebook(path, header, body)
    path.parent.mkdir(parents=True, exist_ok=True)
    if recording is not None:
        recording.save(cassette)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
    return path


def _parts(run: WorkflowRun, path: Path, workflow: str | None, cassette: Path | None) -> tuple[list[str], list[str]]:
    """Return the lines above the test, and those of the test; all that can be wrong is found here."""
    message = _input_of(run)
    answers = run.answers if run.recording is None else run.recording.answers  # those given again by a redo, too
    outside = [message, *(answer.value for answer in answers)]
    facts = facts_of(run, outside=outside)
    cells = cells_of_notebook()
    origin = find_origin(run.workflow, workflow, cells)
    literals = Literals()
    call = [f"{origin.name},", f"input={literals.write(message, 'The input')},"]
    if answers:
        call.append("answers=[")
        for given in answers:
            question = expected_source(question_of(given.request, run.run_id, windows_of(run.events)), 12)
            answer = literals.write(given.value, f"The answer to {given.executor_id!r}")
            parts = [repr(given.executor_id), question, answer]
            if "\n" in question:
                call += [f"{_INDENT}(", *(f"{_INDENT * 2}{part}," for part in parts), f"{_INDENT}),"]
            else:
                call.append(f"{_INDENT}({', '.join(parts)}),")
        call.append("],")
    if cassette is not None:
        place = f"Path(__file__).with_name({cassette.name!r})" if path.suffix == ".py" else repr(cassette.name)
        call.append(f"cassette={place},")
        if not run.recording.everything:
            call.append("everything=False,")
    if facts.error is not None:
        call.append("fails=True,")
    body = ["replayed = replay(", *(_INDENT + line for line in call), ")", *assertions(facts)]
    names = {*literals.names, *(() if origin.module else (origin.name,))}
    source = source_of_names(names, cells.sources) if names else ""
    imports = {*literals.imports, "from agentbench.testing import replay"}
    if origin.module:
        imports.add(f"from {origin.module} import {origin.name}")
    if cassette is not None and path.suffix == ".py":
        imports.add("from pathlib import Path")
    future = [line for line in source.splitlines() if line.startswith("from __future__")]
    source = "\n".join(line for line in source.splitlines() if line not in future)
    header = [*future, *sorted(imports), *(["", source] if source else [])]
    _refuse_secrets("\n".join([*header, *body]), run)
    return header, body


def assertions(facts: Replayed) -> list[str]:
    """Return the lines that compare; `agentbench tests update` finds them by the names of the attributes."""
    names = [name for name in ASSERTED if name != "error" or facts.error is not None]
    starts = [f"assert replayed.{name} == " for name in names]
    return [
        f"{start}{expected_source(getattr(facts, name), len(start))}" for start, name in zip(starts, names, strict=True)
    ]


async def _from_its_input(run: WorkflowRun) -> WorkflowRun:
    """Return a run that began at a checkpoint as one from the input, without a model call: a test begins there."""
    try:
        repeated = await redo(run, 0, run.workflow, "refuse")
        await repeated.result()
    except Exception as error:
        if run.error is None or not isinstance(error, type(run.error)):
            msg = (
                f"Run {run.run_id} began at the checkpoint {run.started_from}, and cannot be repeated from its input: "
                f"{type(error).__name__}: {error}"
            )
            raise KeepTestError(msg) from error
    outputs = repeated.outputs
    if not are_equal(outputs[len(outputs) - len(run.outputs) :], run.outputs) or repeated.status != run.status:
        msg = (
            f"Run {run.run_id} began at the checkpoint {run.started_from}, and repeated from its input it ends with "
            f"{shorten(outputs)}, not with {shorten(run.outputs)}: something was edited, or depends on chance. Keep a "
            'run of fork("input").'
        )
        raise KeepTestError(msg)
    return repeated


def _input_of(run: WorkflowRun) -> Any:
    """Return the input of a run."""
    if not run.is_over and not run.pending_requests:
        msg = f"Run {run.run_id} has not ended: {run!r}. Run it to its end or to its next question first."
        raise KeepTestError(msg)
    return run.input


def _refuse_secrets(source: str, run: WorkflowRun) -> None:
    """Raise an error that names the lines of the test that would contain a secret, but not the secret."""
    executors = run.workflow.graph.executors
    known = SecretFinder()(executors, list(executors.values()))
    lines = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if _TOKEN.search(line) or any(len(secret) >= _SHORTEST_SECRET and secret in line for secret in known)
    }
    for node in ast.walk(ast.parse(source)):
        for name, value in _named_values(node):
            # A default counts, too: `os.getenv("API_KEY") or "…"`.
            for each in value.values if isinstance(value, ast.BoolOp) else [value]:
                text = each.value if isinstance(each, ast.Constant) else None
                if isinstance(text, str) and text.strip("•") and (is_secret_name(name) or _PASSWORD.search(text)):
                    lines.add(each.lineno)
    if lines:
        texts = source.splitlines()
        places = "; ".join(f"line {number}: {_without_texts(texts[number - 1])}" for number in sorted(lines))
        msg = (
            f"The test would contain a secret ({places}). Read it from the environment in the cell or module that "
            "uses it, run again, and keep that run."
        )
        raise KeepTestError(msg, lines=sorted(lines))


def _named_values(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return the values in a node of source, each with the name that it gets there."""
    if isinstance(node, ast.keyword):
        return [(node.arg or "", node.value)]
    if isinstance(node, ast.Assign):
        return [pair for target in node.targets for pair in _assigned(target, node.value)]
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return _assigned(node.target, node.value)
    if isinstance(node, ast.Call) and len(node.args) > 1:
        function = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return [(str(getattr(node.args[0], "value", "")), node.args[1])] if function in _LOOKUPS else []
    if isinstance(node, ast.Dict):
        return [(str(getattr(key, "value", "")), value) for key, value in zip(node.keys, node.values, strict=True)]
    if isinstance(node, ast.arguments):
        named = [*node.posonlyargs, *node.args]
        pairs = list(zip(named[len(named) - len(node.defaults) :], node.defaults, strict=True))
        pairs += [(arg, value) for arg, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value]
        return [(arg.arg, value) for arg, value in pairs]
    return [("", node)] if isinstance(node, ast.Constant) else []


def _assigned(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return the names that an assignment gives to values, also as keys: `environ["API_KEY"] = "…"`."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [pair for each in zip(target.elts, value.elts, strict=False) for pair in _assigned(*each)]
    if isinstance(target, ast.Subscript):
        return [(str(getattr(target.slice, "value", "")), value)]
    return [(getattr(target, "id", getattr(target, "attr", "")), value)]


def _without_texts(line: str) -> str:
    """Return a line without its texts and comments, and without the keys in it."""
    return re.sub(r"""([#"']).*""", r"\1…", _TOKEN.sub("…", line.strip()))


def _module(path: Path, header: list[str], body: list[str]) -> str:
    about = f'"""Kept from a run. `agentbench tests update {path.name}` shows what changed and rewrites the values."""'
    future = [line for line in header if line.startswith("from __future__")]
    rest = [line for line in header if line not in future]
    begin = f"def {path.stem}() -> None:"
    lines = [about, "", *future, *rest, "", "", begin, *(_INDENT + line for text in body for line in text.split("\n"))]
    return "\n".join(lines) + "\n"


def _notebook(path: Path, header: list[str], body: list[str]) -> str:
    """Return the text of the notebook with one more cell."""
    notebook: dict[str, Any] = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    if path.exists():
        notebook = json.loads(path.read_text(encoding="utf-8"))
    used = {cell.get("id") for cell in notebook["cells"]}
    number = next(n for n in range(1, len(used) + 2) if f"kept-test-{n}" not in used)
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": f"kept-test-{number}",
        "metadata": {},
        "outputs": [],
        "source": "\n".join([*header, "", *body]).splitlines(keepends=True),
    }
    notebook["cells"].append(cell)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
