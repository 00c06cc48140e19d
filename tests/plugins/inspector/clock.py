"""Two servers with a page of MCP Apps each, as sources of a toolkit, and a page that tries what it may not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

from pegboard import ToolCall, Toolkit

__all__ = ["PAGE", "Server", "clock_board"]

PAGE = """<!doctype html>
<title>Clock</title>
<p id="input"></p><p id="result"></p><p id="again"></p><ul id="refused"></ul>
<script>
const waiting = new Map();
let last = 0;
const ask = (method, params) => new Promise((resolve, reject) => {
  waiting.set(++last, { resolve, reject });
  parent.postMessage({ jsonrpc: "2.0", id: last, method, params }, "*");
});
const note = (method, params) => parent.postMessage({ jsonrpc: "2.0", method, params }, "*");
const show = (id, value) => (document.getElementById(id).textContent = JSON.stringify(value));
const refused = (what) => {
  const line = Object.assign(document.createElement("li"), { textContent: what });
  document.getElementById("refused").append(line);
};
addEventListener("message", async ({ data }) => {
  if (data.id !== undefined && waiting.has(data.id)) {
    const { resolve, reject } = waiting.get(data.id);
    data.error ? reject(data.error) : resolve(data.result);
  }
  if (data.method === "ui/notifications/tool-input") show("input", data.params.arguments);
  if (data.method === "ui/notifications/tool-result") show("result", data.params);
});
(async () => {
  const appInfo = { name: "clock", version: "1" };
  const host = await ask("ui/initialize", { protocolVersion: "2026-01-26", appInfo, appCapabilities: {} });
  document.title = host.hostContext.toolInfo.tool.name;
  note("ui/notifications/initialized", {});
  note("ui/notifications/size-changed", { width: 300, height: 123 });
  show("again", await ask("tools/call", { name: "refresh", arguments: { zone: "CET" } }));
  for (const name of ["not_for_pages", "other", "shell", "nothing"])
    await ask("tools/call", { name, arguments: {} }).catch((error) => refused(`${name}: ${error.message}`));
  await ask("ui/open-link", { url: "https://example.com" }).catch((error) => refused(`link: ${error.code}`));
  await fetch("/api/board").catch(() => refused("fetch"));
  try { parent.document.title; } catch { refused("parent"); }
  try { document.cookie; } catch { refused("cookie"); }
  try { localStorage.length; } catch { refused("storage"); }
  refused("done");
})();
</script>
"""


class _Tool:
    parameters: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"zone": {"type": "string"}}}

    def __init__(self, name: str, page: str, uri: str, visibility: list[str] | None) -> None:
        self.name, self.description, self._page = name, f"The {name}.", page
        ui = {"resourceUri": uri} if visibility is None else {"resourceUri": uri, "visibility": visibility}
        self.meta = {"ui": ui}

    def call(self, call: ToolCall) -> dict[str, Any]:
        return {"tool": self.name, **call.arguments}

    async def read(self, uri: str) -> Any:
        if uri.endswith("broken"):
            raise OSError("out of paper")
        return SimpleNamespace(contents=[SimpleNamespace(text=self._page)])


class Server:
    """A source of tools with a page, as an MCP server is."""

    problems = ()

    def __init__(self, name: str, tools: dict[str, list[str] | None], page: str = PAGE) -> None:
        self.name = name
        self._tools = [_Tool(each, page, f"ui://{name}/page", seen) for each, seen in tools.items()]
        self._tools.append(_Tool(f"{name}_broken", page, f"ui://{name}/broken", None))

    def tools(self) -> list[Any]:
        return list(self._tools)

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


def clock_board(page: str = PAGE) -> Toolkit:
    """A toolkit with two servers under prefixes, and a tool of its own."""
    toolkit = Toolkit(plugins=())

    @toolkit.tool
    def shell() -> str:
        """A tool of the program, which no page may call."""
        return "run"

    @toolkit.tool(meta={"ui": {"resourceUri": "ui://nowhere/page"}})
    def unreadable() -> str:
        """A tool whose page nothing here can read."""
        return "shown"

    here = {"now": None, "refresh": ["app"], "not_for_pages": ["model"]}
    toolkit.register(Server("clock", here, page), prefix="clock__")
    toolkit.register(Server("other", {"other": ["app"]}), prefix="other__")
    return toolkit
