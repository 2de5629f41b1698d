"""The recipes in CONTRIBUTING.md name files and functions that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "agentbench" / "notebook"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = TEXT[TEXT.index("## Where does my change go?") : TEXT.index("## Commits and changelog")]
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))
PATH = re.compile(r"[\w.]+(?:/[\w.]*)+|\w+\.(?:py|toml|cfg|md)")
ENGINE = (ROOT / "agentbench" / "workflows", ROOT / "agentbench")
OUTSIDE = {"text/plain", "SKILL.md"}  # a type and a file of users


def is_placeholder(word: str) -> bool:
    return bool(re.search(r"NAME|FOLDER|SCENE", word))


@cache
def defined_names() -> frozenset[str]:
    """Every function, class and variable that a module or a class of the project defines."""
    definition = re.compile(r"^ *(?:(?:async )?def|class) (\w+)|^(?: {4})?(\w+)(?:: [^=\n]+)? = ", re.MULTILINE)
    files = [path for folder in ("agentbench", "tests") for path in (ROOT / folder).rglob("*.py")]
    return frozenset(name for path in files for pair in definition.findall(path.read_text("utf-8")) for name in pair)


def test_the_files_exist() -> None:
    named = {word for word in CODE if PATH.fullmatch(word) and not is_placeholder(word) and word not in OUTSIDE}
    missing = {word for word in named if not any((base / word).exists() for base in (ROOT, NOTEBOOK, *ENGINE))}
    assert len(named) > 30
    assert missing == set()


def test_the_commands_exist() -> None:
    modules = re.findall(r"python -m (tests[\w.]*)", TEXT)
    assert modules
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").is_file()] == []


def test_the_functions_and_tables_of_the_recipes_exist() -> None:
    spans = [span for span in re.findall(r"`([^`\n]+)`", RECIPES) if not PATH.fullmatch(span)]
    begins = {found[0] for span in spans if (found := re.match(r"@?[A-Za-z_]\w*(?:\.\w+)?(?=$|\()", span))}
    names = {part for word in begins for part in word.lstrip("@").split(".") if not is_placeholder(part)}
    rooms = {path.name for path in (ROOT / "agentbench").rglob("*") if path.is_dir()}
    words = {"_ab_", "_name", "Shapes", *rooms}
    assert len(names - words) > 20
    assert names - words - defined_names() == set()


def test_a_function_is_in_the_file_that_its_recipe_names() -> None:
    pairs = re.findall(r"`(\w+)[^`\n]*` (?:and `(\w+)` )?(?:in|of) `((?:tests/|[\w/]+/)[\w/.]+\.py)`", RECIPES)
    found = [(name, path) for *names, path in pairs for name in names if name and name != "_name"]
    assert len(found) > 5
    for name, path in found:
        file = next((base / path for base in (ROOT, NOTEBOOK) if (base / path).is_file()), None)
        if not is_placeholder(name + path):
            assert file is not None, path
            assert re.search(rf"\b{name}\b", file.read_text("utf-8")), (name, path)
