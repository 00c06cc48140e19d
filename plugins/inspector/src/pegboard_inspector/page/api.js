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

/** What the server says; `read` makes it of JSON text, by default without loss. */
export const get = async (path, read = parse) => answered(await fetch(`/api/${path}`), read);

export const post = async (path, body = {}) =>
  answered(
    await fetch(`/api/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: print(body),
    }),
  );

/** Everything that the page knows; `on(what, listener)` tells what is new, until the signal says that nobody listens. */
export const state = { board: null, revision: 0, calls: new Map(), approvals: [] };
const listeners = new EventTarget();

export const on = (what, listener, signal) => listeners.addEventListener(what, (event) => listener(event.detail), { signal });
const tell = (what, detail) => listeners.dispatchEvent(new CustomEvent(what, { detail }));

/** Listen to the server for as long as the page is open. */
export function listen() {
  const source = new EventSource("/api/events");
  source.onopen = () => tell("line", true);
  source.onerror = () => tell("line", false);
  source.onmessage = (event) => {
    const news = parse(event.data);
    for (const call of news.calls) take(call);
    if (JSON.stringify(news.approvals) !== JSON.stringify(state.approvals)) {
      state.approvals = news.approvals;
      tell("approvals");
    }
    if (news.board !== state.revision) refresh(news.board);
  };
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
