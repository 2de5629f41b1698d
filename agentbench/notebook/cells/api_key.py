"""A field for an API key, which stays in memory: in a browser tab there are no environment variables."""

from typing import Annotated, Any, NoReturn

from pydantic import Field

from agentbench._bridge import threads_available
from agentbench.agents.clients.openai.settings import validate_key
from agentbench.exceptions import SettingNotFoundError
from agentbench.notebook.forms.form import form
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay
from agentbench.settings import SecretString


class ApiKey(WidgetDisplay):
    """Asks for an API key in a password field; pass the object itself as `api_key`.

    A cell displays the field. Clients read the key with each request, so they can be made before it is entered. Code
    in the same page or kernel can read the key, and so can the service that it is sent to. It is kept in memory only:
    it is in no saved notebook, and it is gone after a reload of the page or a restart of the kernel.

    Args:
        title: The heading, for example the name of the service.

    Raises:
        SettingNotFoundError: By a request of the client, if no key was entered.

    Example:
        key = ApiKey()
        display(key)
        client = OpenAIChatClient("gpt-4o-mini", api_key=key)
    """

    def __init__(self, title: str = "API key") -> None:
        place, end = ("kernel", "restart of the kernel") if threads_available() else ("page", "reload of the page")
        note = (
            f"Code that runs in this {place} can read the key, and so can the service that it is sent to. It is kept "
            f"in memory only: it is not saved with the notebook, and it is gone after a {end}."
        )
        self._title, self._note, self._key = title, note, SecretString("")
        field = Annotated[SecretString, Field(title="Key", description=note)]
        self._form = form(field, title=title, submit="Use this key", on_submit=self._take)
        self._stand_in = StandIn(self)

    def _take(self, typed: str) -> None:
        key = validate_key(typed)
        if not key:
            msg = "The key is empty."
            raise ValueError(msg)
        self._key = key

    def __call__(self) -> str:
        """Return the key as plain text, for a client."""
        if not self._key:
            msg = f"No key was entered for {self._title!r}. Display the ApiKey, enter the key, then run this again."
            raise SettingNotFoundError(msg)
        return str(self._key)

    @property
    def widget(self) -> Any:
        """The field as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        return self._form.widget

    @property
    def text(self) -> str:
        """Whether a key was entered, and who can read it."""
        return f"{self!r}\n{self._note} Where there are no widgets, pass getpass.getpass() instead."

    def close(self) -> None:
        """Remove the field from the page; a key that was entered stays until this object is gone."""
        self._form.close()

    def __reduce__(self) -> NoReturn:
        """Raise `TypeError`, because a key must not be stored or sent to another process."""
        msg = "An ApiKey is kept in memory only and cannot be pickled. In other processes, use OPENAI_API_KEY."
        raise TypeError(msg)

    def __repr__(self) -> str:
        return f"ApiKey({self._title!r}, {'entered' if self._key else 'not entered'})"
