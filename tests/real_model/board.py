"""The tools that a real model is given, and what it is asked."""

from __future__ import annotations

from typing import Any, Final

from attrs import define, field

from pegboard import ToolError, Toolkit, tool, toolset

WEATHER: Final = {"Beijing": "sunny, 25 C", "Oslo": "snow, -4 C", "Paris": "rain, 12 C"}
FILES: Final = {"todo.txt": "Buy milk. Call Ann.", "city.txt": "Oslo", "numbers.txt": "19 and 23"}

ONE_CALL: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("What's the weather in Beijing?", "get_weather", {"city": "Beijing"}),
    ("How is the weather in Paris right now?", "get_weather", {"city": "Paris"}),
    ("Give me a 3-day forecast for Oslo.", "get_weather", {"city": "Oslo", "days": 3}),
    ("Will it rain in London over the next 5 days?", "get_weather", {"city": "London", "days": 5}),
    ("What is 15 + 27?", "add", {"a": 15, "b": 27}),
    ("Add 1200 and 34.", "add", {"a": 1200, "b": 34}),
    ("What's the sum of -5 and 12?", "add", {"a": -5, "b": 12}),
    ("How much is 999 plus 1?", "add", {"a": 999, "b": 1}),
    ("Show me what is in todo.txt.", "read_file", {"path": "todo.txt"}),
    ("Read the file notes/meeting.md.", "read_file", {"path": "notes/meeting.md"}),
    ("Open /etc/hostname and tell me what it says.", "read_file", {"path": "/etc/hostname"}),
    ("What does README.md contain?", "read_file", {"path": "README.md"}),
    ("Run the command `ls -la`.", "run_shell", {"command": "ls -la"}),
    ("Execute `git status` in a shell.", "run_shell", {"command": "git status"}),
    ("Run `df -h` for me.", "run_shell", {"command": "df -h"}),
    ("Use the shell to run `uname -a`.", "run_shell", {"command": "uname -a"}),
    (
        "Send an e-mail to ann@example.com with the subject 'Lunch' and the body 'Noon?'.",
        "send_email",
        {"to": "ann@example.com", "subject": "Lunch", "body": "Noon?"},
    ),
    (
        "E-mail bob@example.com, subject 'Report', body 'It is done.'",
        "send_email",
        {"to": "bob@example.com", "subject": "Report", "body": "It is done."},
    ),
    ("What's the weather like in Tokyo?", "get_weather", {"city": "Tokyo"}),
    ("Calculate 7 + 8.", "add", {"a": 7, "b": 8}),
]
"""What is asked, the tool that has to be called, and the arguments that it has to be called with at least."""


@toolset
@define
class Desk:
    """Tools that keep what was done with them."""

    sent: list[dict[str, str]] = field(factory=list)
    ran: list[str] = field(factory=list)

    @tool(read_only=True)
    def get_weather(self, city: str, days: int = 1) -> str:
        """Weather forecast for a city.

        Args:
            city: City name
            days: Forecast days
        """
        if city not in WEATHER:
            raise ToolError(f"there is no forecast for {city}")
        return f"{city}, {days} day(s): {WEATHER[city]}"

    @tool(read_only=True)
    def add(self, a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    @tool(read_only=True)
    def read_file(self, path: str) -> str:
        """Read a text file."""
        if path not in FILES:
            raise ToolError(f"there is no file {path}; there are: {', '.join(FILES)}")
        return FILES[path]

    @tool
    def run_shell(self, command: str) -> str:
        """Run a shell command and return what it prints."""
        self.ran.append(command)
        return "done"

    @tool
    def send_email(self, to: str, subject: str, body: str) -> str:
        """Send an e-mail."""
        self.sent.append({"to": to, "subject": subject, "body": body})
        return f"sent to {to}"


def board() -> tuple[Toolkit, Desk]:
    """A toolkit with nothing but the desk."""
    toolkit, desk = Toolkit(plugins=()), Desk()
    toolkit.register(desk)
    return toolkit, desk
