"""Modes of an agent, such as planning with a person and executing on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from agentbench._secrets import masked_repr
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

DEFAULT_MODE_SOURCE_ID: Final = "agent_mode"

_CURRENT: Final = "current_mode"
_PREVIOUS: Final = "previous_mode_for_notification"

_MODES: Final = {
    "plan": (
        "Work together with the user: look into the task, ask what is unclear, write the steps down as tasks, and "
        "have the plan approved before anything is changed."
    ),
    "execute": (
        "Work on your own: carry out the plan step by step, decide small things yourself, and report at the end."
    ),
}

_INSTRUCTIONS: Final = (
    "You work in one of these modes:\n{available_modes}\nThe current mode is {current_mode}. Follow it. Switch "
    "with mode_set when the user asks for it, or has approved a plan that is to be carried out."
)


class AgentModeProvider(ContextProvider):
    """Lets an agent work in modes: `plan` with a person, then `execute`; or modes that you define.

    The model reads and sets the mode with the tools `mode_get` and `mode_set`. In code, use `get_agent_mode` and
    `set_agent_mode`.

    Args:
        source_id: The id of the provider, unique in an agent.
        default_mode: The mode of a new session; by default the first one.
        mode_descriptions: The instructions for each mode, by its name. Names are compared without regard to case.
        instructions: Instructions for the model; `{available_modes}` and `{current_mode}` are replaced.

    Attributes:
        available_modes: The names of the modes in lower case.

    Raises:
        ValueError: There are no modes, two modes have the same name, or the default is not one of them.

    Example:
        provider = AgentModeProvider(mode_descriptions={"draft": "Write freely.", "edit": "Only correct mistakes."})
    """

    def __init__(
        self,
        source_id: str = DEFAULT_MODE_SOURCE_ID,
        *,
        default_mode: str | None = None,
        mode_descriptions: Mapping[str, str] | None = None,
        instructions: str | None = None,
    ) -> None:
        super().__init__(source_id)
        descriptions = _MODES if mode_descriptions is None else mode_descriptions
        self.available_modes = tuple(map(_normal, descriptions))
        if not descriptions or len(set(self.available_modes)) < len(descriptions):
            message = (
                f"The modes are {list(descriptions)}. Expected at least one, with names that differ in more than case."
            )
            raise ValueError(message)
        self.mode_descriptions = dict(zip(self.available_modes, descriptions.values(), strict=True))
        self.default_mode = _check_mode(default_mode or self.available_modes[0], self.available_modes)
        self.instructions = _INSTRUCTIONS if instructions is None else instructions
        self._ab_tools = [FunctionTool(self.mode_get), FunctionTool(self.mode_set)]

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the tools and the mode. Tell the model once about a change by `set_agent_mode`."""
        mode = self._ab_mode_of(session)
        listed = "\n".join(f"- {name}: {text}" for name, text in self.mode_descriptions.items())
        text = self.instructions.replace("{available_modes}", listed).replace("{current_mode}", mode)
        context.extend_instructions(self, text)
        context.extend_tools(self, self._ab_tools)
        previous = _state_of(session, self.source_id).pop(_PREVIOUS, None)
        if previous is not None and previous != mode:
            notice = f"The mode was changed from {previous} to {mode}. Follow the instructions of {mode} from now on."
            context.extend_messages(self, [Message("user", notice)])

    def mode_get(self, context: FunctionInvocationContext) -> dict[str, str]:
        """Return the current mode."""
        return {"mode": self._ab_mode_of(context.session)}

    def mode_set(self, context: FunctionInvocationContext, mode: str) -> dict[str, str]:
        """Switch to another mode."""
        mode = _check_mode(mode, self.available_modes)
        _state_of(context.session, self.source_id)[_CURRENT] = mode
        return {"mode": mode, "message": f"The mode is {mode} now. {self.mode_descriptions[mode]}"}

    def _ab_mode_of(self, session: AgentSession) -> str:
        return get_agent_mode(
            session,
            source_id=self.source_id,
            default_mode=self.default_mode,
            available_modes=self.available_modes,
        )


def get_agent_mode(
    session: AgentSession,
    *,
    source_id: str = DEFAULT_MODE_SOURCE_ID,
    default_mode: str | None = None,
    available_modes: Sequence[str] | None = None,
) -> str:
    """Return the mode of a session. If it has no mode, or an unavailable one, set the default mode.

    Args:
        session: The session.
        source_id: The id of the provider.
        default_mode: The default mode; if omitted, the first of the available modes.
        available_modes: The available modes; if omitted, `plan` and `execute`.

    Raises:
        TypeError: The state of the session has another value under the id.
        ValueError: The default mode is not available.

    Example:
        assert get_agent_mode(AgentSession()) == "plan"
    """
    modes = _names(available_modes)
    if not modes:
        message = "available_modes is empty. Expected at least one mode."
        raise ValueError(message)
    state = _state_of(session, source_id)
    if state.get(_CURRENT) not in modes:
        state[_CURRENT] = _check_mode(default_mode or modes[0], modes)
    return str(state[_CURRENT])


def set_agent_mode(
    session: AgentSession,
    mode: str,
    *,
    source_id: str = DEFAULT_MODE_SOURCE_ID,
    available_modes: Sequence[str] | None = None,
) -> str:
    """Set the mode of a session and return its name. The next run tells the model about the change.

    Args:
        session: The session.
        mode: The name of the mode; case is ignored.
        source_id: The id of the provider.
        available_modes: The available modes; if omitted, `plan` and `execute`.

    Raises:
        TypeError: The state of the session has another value under the id.
        ValueError: The mode is not available.

    Example:
        session = AgentSession()
        set_agent_mode(session, "execute")
        assert get_agent_mode(session) == "execute"
    """
    modes = _names(available_modes)
    mode = _check_mode(mode, modes)
    state = _state_of(session, source_id)
    before = state.get(_CURRENT)
    if before is not None and before != mode:
        state.setdefault(_PREVIOUS, before)  # keep the mode that the model was told last
    state[_CURRENT] = mode
    return mode


def _names(modes: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(_MODES) if modes is None else tuple(map(_normal, modes))


def _normal(mode: str) -> str:
    return mode.strip().lower()


def _check_mode(mode: str, modes: Sequence[str]) -> str:
    name = _normal(mode)
    if name not in modes:
        message = f"Unknown mode {mode!r}. Expected one of: {', '.join(modes)}."
        raise ValueError(message)
    return name


def _state_of(session: AgentSession, source_id: str) -> dict[str, Any]:
    state = session.state.setdefault(source_id, {})
    if not isinstance(state, dict):
        problem = f"state[{source_id!r}] of {session!r} is {masked_repr(state)}"
        message = f"{problem}. Expected the dictionary of an AgentModeProvider."
        raise TypeError(message)
    return state
