// Pages of MCP Apps: a third party's page in a frame that reaches nothing. It is spoken to by messages alone.

import { get, on, post, state } from "./api.js";
import { attempt } from "./calls.js";
import { disclosure, fill, h } from "./dom.js";
import { print } from "./json.js";

const VERSION = "2026-01-26";
const [LOWEST, HIGHEST] = [40, 800]; // pixels

/** The page of a call's tool, loaded when it is opened. `full` is what is known of the call. */
export function app(full, signal) {
  return disclosure(`Page ${full.page}`, () => {
    const place = h("div", { class: "app" }, h("p", { class: "hint" }, "Loading"));
    const trouble = h("div", {});
    attempt(async () => {
      const opened = await post("apps", { call: full.id });
      const call = await get(`calls/${full.id}`, JSON.parse); // plain data: messages carry nothing else
      const frame = h("iframe", { src: opened.url, sandbox: "allow-scripts", referrerpolicy: "no-referrer", title: `Page of ${call.name}` });
      speak(frame, opened, call, signal);
      fill(place, h("p", { class: "hint" }, "This page comes from the tool's server. It has no network here."), frame);
    }, trouble).then((done) => done === null && fill(place, trouble));
    return place;
  });
}

/** Answer what the page asks, and tell it of its call. */
function speak(frame, opened, call, signal) {
  const send = (message) => frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*"); // its origin is opaque
  const answers = {
    ping: () => ({}),
    "ui/initialize": () => ({
      protocolVersion: VERSION,
      hostInfo: { name: "pegboard-inspector", version: "1" },
      hostCapabilities: { serverTools: {}, logging: {} },
      hostContext: {
        toolInfo: { tool: opened.tool }, displayMode: "inline", availableDisplayModes: ["inline"], platform: "web", locale: navigator.language,
        theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
        containerDimensions: { width: frame.clientWidth, maxHeight: HIGHEST },
      },
    }),
    "ui/request-display-mode": () => ({ mode: "inline" }),
    "tools/call": async ({ name, arguments: given }) => {
      const { id } = await post("apps/call", { app: opened.app, name, arguments: print(given ?? {}) });
      await ended(id, signal);
      return answer((await get(`calls/${id}`, JSON.parse)).result);
    },
  };
  const told = {
    "ui/notifications/initialized": () => {
      send({ method: "ui/notifications/tool-input", params: { arguments: input(call.arguments) } });
      if (call.status === "cancelled") send({ method: "ui/notifications/tool-cancelled", params: { reason: call.result.text } });
      else send({ method: "ui/notifications/tool-result", params: answer(call.result) });
    },
    "ui/notifications/size-changed": ({ height }) => {
      if (Number.isFinite(height)) frame.style.height = `${Math.min(Math.max(height, LOWEST), HIGHEST)}px`;
    },
  };
  addEventListener("message", async ({ source, data }) => {
    if (source !== frame.contentWindow || data?.jsonrpc !== "2.0" || typeof data.method !== "string") return;
    const { id, method, params } = data;
    if (id === undefined) return told[method]?.(params ?? {});
    try {
      if (!Object.hasOwn(answers, method)) throw new Error(`the inspector does not do ${method}`);
      send({ id, result: await answers[method](params ?? {}) });
    } catch (error) {
      send({ id, error: { code: Object.hasOwn(answers, method) ? -32000 : -32601, message: error.message } });
    }
  }, { signal });
  signal.addEventListener("abort", () => send({ id: 0, method: "ui/resource-teardown", params: { reason: "closed" } }));
}

const ended = (id, signal) => new Promise((resolve) => {
  const look = () => state.calls.get(id)?.done && resolve();
  on("call", (changed) => changed === id && look(), signal);
  look();
});

function input(text) {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return {};
  }
}

/** A result as MCP has it. */
function answer(result) {
  const content = result.content.map((each) => {
    if (each.type === "text") return { type: "text", text: each.text };
    if (["image", "audio"].includes(each.type) && each.data) return { type: each.type, data: each.data, mimeType: each.media_type };
    return { type: "text", text: JSON.stringify(each) };
  });
  const isObject = result.data !== null && typeof result.data === "object" && !Array.isArray(result.data);
  const meta = result.metadata?.mcp?._meta;
  return { content, isError: result.error !== null && result.error !== undefined, ...(isObject && { structuredContent: result.data }), ...(meta && { _meta: meta }) };
}
