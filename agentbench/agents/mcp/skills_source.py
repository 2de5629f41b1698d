"""Skills that a Model Context Protocol server offers as resources."""

from __future__ import annotations

import logging
from typing import Any

from agentbench._plain_text import plain_line
from agentbench._workers import run_in_thread
from agentbench.agents.mcp.tool import MCPTool
from agentbench.agents.skills.skill import Skill, SkillResource, StoredSkill, read_skill_md
from agentbench.agents.skills.sources import SkillsSource
from agentbench.agents.tools.collection import connect_once
from agentbench.exceptions import MCPLimitError, ToolResultError

logger = logging.getLogger("agentbench")

_SKILL_MD = "/SKILL.md"
_URI_CHARS, _ERROR_CHARS = 200, 500


class MCPSkillsSource(SkillsSource):
    """A source of the skills of a server: each resource whose address ends with `/SKILL.md` is one.

    Resources in the same folder or below it belong to the skill. A skill that cannot be read, or exceeds the `limits`
    of the server, is ignored, and a warning says why. No code from the server is run.

    Args:
        server: The MCP tool of the server; it connects when the skills are first requested.

    Example:
        server = MCPStreamableHTTPTool("handbook", "https://example.com/mcp")
        agent = Agent(EchoChatClient(), context_providers=[SkillsProvider(MCPSkillsSource(server))])
    """

    def __init__(self, server: MCPTool) -> None:
        self.server = server

    async def get_skills(self) -> list[Skill]:
        """Return the skills.

        Raises:
            MCPLimitError: The server lists more skills than its limits allow.
            ToolExecutionException: The server cannot be reached.
        """
        await connect_once(self.server)
        listed, limits = await self.server.list_resources(), self.server.limits
        uris = [resource["uri"] for resource in listed if resource["uri"].endswith(_SKILL_MD)]
        if len(uris) > limits.max_skills:
            raise MCPLimitError(self.server.name, f"{len(uris):,} skills", "max_skills", limits.max_skills)
        skills: list[Skill] = []
        for uri in uris:
            folder = uri.removesuffix("SKILL.md")
            try:
                content = await self.server.read_resource(uri)
                frontmatter, _ = await run_in_thread(read_skill_md, content, limits.max_front_matter_chars)
            except (ValueError, ToolResultError) as error:
                shown = plain_line(uri, _URI_CHARS), self.server.name, plain_line(error, _ERROR_CHARS)
                logger.warning("The skill %s of the server %s is ignored: %s", *shown)
                continue
            parts: list[SkillResource] = [
                _ServerResource(
                    self.server,
                    resource["uri"],
                    name=resource["uri"].removeprefix(folder),
                    description=resource.get("description"),
                )
                for resource in listed
                if resource["uri"].startswith(folder) and resource["uri"] != uri
            ]
            skills.append(StoredSkill(frontmatter=frontmatter, content=content, resources=parts))
        return skills


class _ServerResource(SkillResource):
    def __init__(self, server: MCPTool, uri: str, *, name: str, description: str | None) -> None:
        super().__init__(name=name, description=description)
        self._ab_server, self._ab_uri = server, uri

    async def read(self, **kwargs: Any) -> str:
        return await self._ab_server.read_resource(self._ab_uri)
