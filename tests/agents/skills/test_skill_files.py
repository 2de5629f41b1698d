"""Skills in folders, friendly and hostile ones."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    FileSkill,
    FileSkillScript,
    FileSkillsSource,
    InlineSkill,
    Skill,
    SkillFrontmatter,
    subprocess_script_runner,
)
from tests.parts.errors import raises

NAMES_OF_EVERY_LENGTH = ["a", "a1", "a-b", "1-2-3", "x" * 64]


def write(folder: Path, text: str | bytes | None = None, **files: str) -> Path:
    """Make the folder of a skill, with files whose `__` are slashes and `_dot_` dots."""
    pytest.importorskip("yaml")
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {folder.name}\ndescription: Does things.\n---\n# Do it\n" if text is None else text
    (folder / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(content)
    return folder


async def found(*paths: Any, **settings: Any) -> dict[str, Skill]:
    return {skill.frontmatter.name: skill for skill in await FileSkillsSource(paths, **settings).get_skills()}


async def only(*paths: Any, **settings: Any) -> Skill:
    [skill] = (await found(*paths, **settings)).values()
    return skill


@pytest.mark.parametrize("name", NAMES_OF_EVERY_LENGTH)
def test_good_names(name: str):
    assert SkillFrontmatter(name=name, description="d").name == name


@pytest.mark.parametrize("name", ["", "A", "a_b", "a--b", "-a", "a-", "x" * 65, "a\n", "é", "a b"])
def test_bad_names(name: str):
    with raises(ValueError):
        SkillFrontmatter(name=name, description="d")


def test_descriptions_and_metadata():
    for description in ("", " ", "x" * 1025):
        with raises(ValueError, "1,024"):
            SkillFrontmatter(name="a", description=description)
    with raises(ValueError, "500"):
        SkillFrontmatter(name="a", description="d", compatibility="x" * 501)
    metadata = {"author": "Ada"}
    frontmatter = SkillFrontmatter(name="a", description="x" * 1024, metadata=metadata)
    metadata.clear()
    assert frontmatter.metadata == {"author": "Ada"}
    assert SkillFrontmatter(name="a", description="d").metadata is None


async def test_a_folder_is_a_skill(tmp_path: Path):
    text = (
        "\ufeff---\nname: menus\r\ndescription: >-\n  Plans menus:\n  # of all kinds\nlicense: 'MIT: really' # so\n"
        "allowed-tools: read write\ncompatibility: |\n  Python\nmetadata:\n  version: 1.10\n  since: 2024-01-01\n"
        "  tags: [a, b]\nunknown: x\n---\n\n# Menus\n"
    )
    folder = write(
        tmp_path / "menus", text,
        references__b_dot_md="b", references__a_dot_JSON="{}", references__c_dot_exe="\0", assets__t_dot_csv="1,2",
        forms_dot_md="f", reference__deep__x_dot_md="x", scripts__go_dot_py="print(1)", scripts__office__p_dot_sh="p",
        bin__tool="#!/bin/sh\n", __pycache____x_dot_txt="no", _dot_git__x_dot_txt="no",
    )  # fmt: skip
    skill = await only(folder)
    assert isinstance(skill, FileSkill)
    facts = skill.frontmatter
    assert (facts.name, facts.description) == ("menus", "Plans menus: # of all kinds")
    assert (facts.license, facts.allowed_tools, facts.compatibility) == ("MIT: really", "read write", "Python\n")
    assert facts.metadata == {"version": "1.10", "since": "2024-01-01", "tags": "['a', 'b']"}
    resources = ["assets/t.csv", "forms.md", "reference/deep/x.md", "references/a.JSON", "references/b.md"]
    assert [one.name for one in skill.resources] == resources
    assert await skill.resources[4].read() == "b"
    assert {one.description for one in skill.resources} == {None}
    assert [one.name for one in skill.scripts] == ["bin/tool", "scripts/go.py", "scripts/office/p.sh"]
    assert skill.content.startswith("---\nname: menus")
    assert '<script name="scripts/go.py"><parameters_schema>{"type": "array"' in skill.content
    assert repr(skill) == "FileSkill('menus', resources=5, scripts=3)"


async def test_where_skills_are_found(tmp_path: Path):
    write(tmp_path / "one")
    write(tmp_path / "group" / "two")
    write(tmp_path / "group" / "deep" / "three")
    write(tmp_path / "one" / "inside")
    assert list(await found(tmp_path, "")) == ["two", "one"]
    assert list(await found(str(tmp_path / "one"), tmp_path)) == ["one", "two"]


async def test_a_path_that_does_not_exist_is_reported(tmp_path: Path):
    write(tmp_path / "one")
    with pytest.warns(RuntimeWarning, match="missing"):
        assert list(await found(tmp_path / "missing", tmp_path)) == ["one"]


async def test_a_description_that_people_publish_is_read_with_a_warning(tmp_path: Path):
    write(tmp_path / "menus", "---\nname: menus\ndescription: Use when: the user asks # for food\n---\nBegin.\n")
    with pytest.warns(RuntimeWarning, match=r"menus.SKILL\.md.*line 3"):
        skill = await only(tmp_path)
    assert skill.frontmatter.description == "Use when: the user asks # for food"


async def test_a_long_description_is_shortened_with_a_warning(tmp_path: Path):
    write(tmp_path / "menus", f"---\nname: menus\ndescription: {'x' * 1076}\n---\nBegin.\n")
    with pytest.warns(RuntimeWarning, match="1,076 characters"):
        skill = await only(tmp_path)
    assert len(skill.frontmatter.description) == 1024


async def test_the_number_of_files_is_limited(tmp_path: Path):
    write(tmp_path / "many", a_dot_md="a", b_dot_md="b", c_dot_md="c")
    with pytest.warns(RuntimeWarning, match="max_files=2"):
        skill = await only(tmp_path, max_files=2)
    assert [one.name for one in skill.resources] == ["a.md", "b.md"]


async def test_settings_of_directories_and_endings(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    folder = write(tmp_path / "a", note_dot_md="n", docs__x_dot_rst="x", bin__go_dot_js="j")
    (folder / "skill.md").write_text("not a resource")
    with caplog.at_level(logging.WARNING, "agentbench"):
        skill = await only(
            tmp_path,
            resource_directories=[".", "./docs/", "docs", "../..", "/etc", "C:\\x"],
            resource_extensions=["rst", ".md"],
            script_directories=["bin"],
            script_extensions=[".js"],
        )
    assert [one.name for one in skill.resources] == ["docs/x.rst", "note.md"]
    assert [one.name for one in skill.scripts] == ["bin/go.js"]
    assert caplog.text.count("is ignored") == 3
    with raises(ValueError, "directory"):
        FileSkillsSource(tmp_path, script_directories=[" "])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"---\nname: bad\ndescription: \xff\xfe\n---\n", "utf-8"),
        ("# no front matter", "front matter is missing"),
        ("---\nname: bad\n", "front matter is missing"),
        ("---\nname: other\ndescription: d\n---\n", "name of its folder"),
        ("---\nname: bad\n---\n", "no description"),
        ("---\ndescription: d\n---\n", "no name"),
        ("---\nname: [bad]\ndescription: d\n---\n", "no name"),
        ("---\nname: bad\ndescription: ''\n---\n", "1,024"),
        ("---\nname: bad\ndescription: d\n  x: [\n---\n", "line"),
        ("---\n- name\n---\n", "Expected a mapping"),
        ("---\nname: {\n---\n", "not valid YAML in line"),
        ("---\nname: bad\ndescription: d\nmetadata: x\n---\n", "metadata"),
        ("---\nname: bad\ndescription: d\nmetadata: {a: &a x, b: *a}\n---\n", "aliases"),
        ("---\nname: bad\ndescription: !!python/object/apply:os.system ['true']\n---\n", "no description"),
        (f"---\nname: bad\ndescription: d\nx: {'[' * 5_000}\n---\n", "skipped"),
        (f"---\nname: bad\ndescription: d\n---\n{'x' * 2**20}", "1,048,5"),
    ],
)
async def test_a_bad_folder_is_skipped_and_the_others_are_there(
    tmp_path: Path, text: str | bytes, problem: str, caplog: pytest.LogCaptureFixture
):
    write(tmp_path / "bad", text)
    write(tmp_path / "good")
    with caplog.at_level(logging.WARNING, "agentbench"), pytest.warns(RuntimeWarning, match="is skipped"):
        assert list(await found(tmp_path)) == ["good"]
    assert problem in caplog.text


async def test_the_first_of_one_name_wins(tmp_path: Path):
    write(tmp_path / "x" / "same")
    write(tmp_path / "y" / "same")
    with pytest.warns(RuntimeWarning, match="called 'same'"):
        skill = await only(tmp_path)
    assert "x" in Path(skill.path).parts  # type: ignore[attr-defined]


async def test_links_are_refused(tmp_path: Path):
    secret = tmp_path / "secret.md"
    secret.write_text("the key")
    outside = write(tmp_path / "outside" / "stolen")
    folder = write(tmp_path / "skills" / "a", references__ok_dot_md="ok", scripts__ok_dot_py="")
    os.symlink(secret, folder / "references" / "linked.md")
    os.symlink(secret, folder / "scripts" / "linked.py")
    os.symlink(tmp_path, folder / "assets")
    os.symlink(outside, tmp_path / "skills" / "stolen")
    other = write(tmp_path / "skills" / "b")
    (other / "SKILL.md").unlink()
    os.symlink(folder / "SKILL.md", other / "SKILL.md")
    with pytest.warns(RuntimeWarning) as warned:
        skills = await found(tmp_path / "skills")
    assert list(skills) == ["a"]
    assert [one.name for one in skills["a"].resources] == ["references/ok.md"]
    assert [one.name for one in skills["a"].scripts] == ["scripts/ok.py"]
    assert {"linked.md", "linked.py", "assets"} <= {
        Path(str(one.message).split(" in the skill")[0]).name for one in warned if "it is a link" in str(one.message)
    }


async def test_what_changed_since_it_was_found_is_checked_again(tmp_path: Path):
    ran: list[Any] = []
    folder = write(
        tmp_path / "skills" / "a",
        references__r_dot_md="r",
        references__big_dot_md="b",
        scripts__s_dot_py="",
        assets__t_dot_txt="t",
    )
    skill = await only(tmp_path / "skills", script_runner=lambda *args: ran.append(args))
    resources = {one.name: one for one in skill.resources}
    (tmp_path / "out.md").write_text("the key")
    for name in ("references/r.md", "scripts/s.py"):
        (folder / name).unlink()
        os.symlink(tmp_path / "out.md", folder / name)
    (folder / "references" / "big.md").write_text("x" * (2**20 + 1))
    os.rename(folder / "assets", tmp_path / "moved")
    os.symlink(tmp_path / "moved", folder / "assets")
    for name in ("references/r.md", "assets/t.txt"):
        with raises(ValueError, "regular file"):
            await resources[name].read()
    with raises(OSError, "1,048,577"):
        await resources["references/big.md"].read()
    with raises(ValueError, "regular file"):
        await skill.scripts[0].run(skill, [])
    assert not ran


async def test_scripts_need_a_runner_a_folder_and_a_whole_path(tmp_path: Path):
    write(tmp_path / "a", scripts__s_dot_py="")
    skill = await only(tmp_path)
    with raises(ValueError, "subprocess_script_runner"):
        await skill.scripts[0].run(skill, [])
    with raises(TypeError, "FileSkill"):
        await skill.scripts[0].run(InlineSkill(name="i", description="d", instructions="x"), [])
    with raises(ValueError, "absolute"):
        FileSkillScript(name="s", full_path="s.py")
    outside = FileSkillScript(name="s", full_path=str(tmp_path / "s.py"), runner=lambda *_: "ran")
    with raises(ValueError, "regular file"):
        await outside.run(skill, [])


async def test_any_path_may_lead_to_the_folder_of_a_skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = write(tmp_path / "a", scripts__s_dot_py="print()", docs__x_dot_md="x")
    os.symlink(tmp_path, tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    for path in ("a", "./link/a", tmp_path / "link" / "a"):
        found_there = await only(path)
        assert ([one.name for one in found_there.scripts], found_there.resources[0].name) == (
            ["scripts/s.py"], "docs/x.md"
        )  # fmt: skip
        skill = FileSkill(frontmatter=found_there.frontmatter, content="", path=path)
        for start in (folder, tmp_path / "link" / "a"):
            full_path = str(start / "scripts" / "s.py")
            script = FileSkillScript(name="scripts/s.py", full_path=full_path, runner=lambda *_: "ran")
            assert await script.run(skill, []) == "ran"
            assert await script.read(skill) == "print()"


@pytest.mark.parametrize("returned", [None, "text", {"a": 1}])
async def test_runners_of_all_kinds(tmp_path: Path, returned: Any):
    write(tmp_path / "a", scripts__s_dot_py="")

    async def later(skill: Any, script: Any, args: Any = None) -> Any:
        return returned

    class Runner:
        def __call__(self, skill: Any, script: Any, args: Any = None) -> Any:
            return returned

    for runner in (later, Runner(), lambda skill, script, args=None: returned):
        skill = await only(tmp_path, script_runner=runner)
        assert await skill.scripts[0].run(skill, ["x"]) == returned


def test_what_makes_runners_is_no_runner():
    runner: Any = subprocess_script_runner
    with raises(TypeError, "subprocess_script_runner()"):
        FileSkillsSource("skills", script_runner=runner)
