// What the server knows, and what it is asked to do.

import { parse, print } from "./json.js";

async function answered(response, read = parse) {
  const text = await response.text();
  let found = null;
  try {
    found = read(text);
  } catch {
    found = { error: text.trim() };
  }
  if (!response.ok) throw new Error(found?.error || `the server answered ${response.status}`);
  return found;
}

/** The key of this inspector, kept for this origin alone: a cookie goes to the servers of all ports of this machine. */
const key = (() => {
  const found = /^#key=(.+)$/.exec(location.hash)?.[1];
  if (found) {
    localStorage.setItem("key", found);
    history.replaceState(null, "", "/"); // out of the address, and of what is written down of it
  }
  return localStorage.getItem("key") ?? "";
})();

const ask = (path, { headers, ...options } = {}) => fetch(`/api/${path}`, { ...options, headers: { ...headers, "x-pegboard-key": key } });

/** What the server says; `read` makes it of JSON text, by default without loss. */
export const get = async (path, read = parse) => answered(await ask(path), read);

export const post = async (path, body = {}) =>
  answered(
    await ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: print(body),
    }),
  );

/** Everything that the page knows; `on(what, listener)` tells what is new, until the signal is aborted. */
export const state = { board: null, revision: 0, calls: new Map(), approvals: [], held: null, logs: {} };
const listeners = new EventTarget();

export const on = (what, listener, signal) => listeners.addEventListener(what, (event) => listener(event.detail), { signal });
const tell = (what, detail) => listeners.dispatchEvent(new CustomEvent(what, { detail }));

/** Listen to the server for as long as the page is open: an `EventSource` with a header of its own. */
export async function listen() {
  for (let last = "0"; ; await new Promise((done) => setTimeout(done, 1000))) {
    try {
      const response = await ask("events", { headers: { "last-event-id": last } });
      if (!response.ok) throw new Error(await response.text());
      tell("line", "");
      for await (const { id, data } of events(response.body)) {
        hear(parse(data));
        last = id;
      }
      throw new Error();
    } catch (error) {
      tell("line", error.name === "Error" && error.message ? error.message : "The inspector does not answer");
    }
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const whole = (text + value).split("\n\n");
    text = whole.pop();
    for (const each of whole) {
      const [, id, data] = /^id: (.*)\ndata: (.*)$/s.exec(each) ?? [];
      if (data !== undefined) yield { id, data };
    }
  }
}

function hear(news) {
  for (const call of news.calls) take(call);
  if (JSON.stringify(news.approvals) !== JSON.stringify(state.approvals)) {
    state.approvals = news.approvals;
    tell("approvals");
  }
  if (JSON.stringify(news.held) !== JSON.stringify(state.held)) {
    state.held = news.held;
    tell("held");
  }
  if (JSON.stringify(news.logs) !== JSON.stringify(state.logs)) {
    state.logs = news.logs;
    tell("logs");
  }
  if (news.board !== state.revision) refresh(news.board);
}

function take(fresh) {
  const known = state.calls.get(fresh.id);
  const last = known?.chunks.at(-1)?.number ?? 0;
  const chunks = [...(known?.chunks ?? []), ...fresh.chunks.filter((chunk) => chunk.number > last)];
  state.calls.set(fresh.id, { ...fresh, chunks: chunks.slice(-500) });
  tell("call", fresh.id);
}

async function refresh(revision) {
  state.revision = revision;
  try {
    state.board = await get("board", JSON.parse); // thousands of tools, and no number in them
    state.revision = state.board.revision;
    tell("board");
  } catch (error) {
    tell("failed", error.message);
  }
}
