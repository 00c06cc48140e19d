// Calls: a card for each, which follows the call as long as it is seen, and the approvals that wait for an answer.

import { app } from "./apps.js";
import { block, result } from "./blocks.js";
import { get, on, post, state } from "./api.js";
import { button, code, copyable, disclosure, fill, fresh, h } from "./dom.js";
import { form, problems } from "./form.js";
import { parse, print } from "./json.js";

export const WORDS = {
  pending: "starting", awaiting_approval: "waits for approval", running: "running", success: "success", error: "error",
  invalid: "invalid", not_found: "not found", inactive: "inactive", denied: "denied", timeout: "timeout",
  cancelled: "cancelled", suspended: "waits for an answer",
};
const GOOD = new Set(["success"]);
const LIVE = new Set(["pending", "running", "awaiting_approval", "suspended"]);

export const tone = (status) => (GOOD.has(status) ? "good" : LIVE.has(status) ? "live" : "bad");
export const duration = (took) => (took < 1 ? `${(took * 1000).toFixed(took < 0.01 ? 1 : 0)} ms` : `${took.toFixed(1)} s`);

/** Report that something could not be done, where the user requested it. */
export const attempt = async (work, place) => {
  place?.querySelector(":scope > .failed")?.remove(); // of the time before
  try {
    return await work();
  } catch (error) {
    place && fill(place, h("p", { class: "failed", role: "alert" }, error.message));
    return null;
  }
};

const label = (status, now) => {
  status.textContent = WORDS[now.status] ?? now.status;
  status.dataset.tone = tone(now.status);
};

/** The calls that a call has made, and those that they have made: a tree in the order in which they began. */
function inner(id, signal) {
  const list = h("ul", { class: "inner", "aria-label": "Calls that it made", hidden: true });
  const shown = new Set();
  const add = (each) => {
    if (state.calls.get(each)?.parent !== id || shown.has(each)) return;
    shown.add(each);
    list.hidden = false;
    list.append(branch(each, signal));
  };
  for (const each of state.calls.keys()) add(each);
  on("call", add, signal);
  return list;
}

/** One call of that tree: a line that opens, and below it what it has called. */
function branch(id, signal) {
  const call = () => state.calls.get(id);
  const [name, status, time] = [h("span", { class: "mono" }), h("span", { class: "status" }), h("span", { class: "time" })];
  const outcome = h("div", { class: "outcome" });
  const trouble = h("div", {});
  const details = disclosure(h("span", { class: "line" }, name, status, time), () =>
    h("div", { class: "outcome" }, code(pretty(call().arguments), "Arguments"), outcome, trouble));
  let fetched = null;
  async function update() {
    const now = call();
    name.textContent = now.name || "a tool that is not there";
    label(status, now);
    time.textContent = now.done ? duration(Number(now.duration)) : "";
    if (!now.done || !details.open || fetched === now.status) return;
    fetched = now.status;
    const full = await attempt(() => get(`calls/${id}`), trouble);
    if (full?.result) fill(outcome, result(full.result));
  }
  on("call", (changed) => changed === id && update(), signal);
  details.addEventListener("toggle", update);
  update();
  return h("li", {}, details, inner(id, signal));
}

/** The card of a call. `edit({ arguments, withheld })` takes its arguments into the form, `ended(result)` is told how it ends. */
export function card(id, { edit, ended, signal, link = false }) {
  const call = () => state.calls.get(id);
  const status = h("span", { class: "status" });
  const time = h("span", { class: "time" });
  const cancel = button("Cancel", () => attempt(() => post("cancel", { call: id }), trouble), { class: "quiet" });
  const again = button("Run again", () => attempt(() => post("again", { call: id }), trouble), { class: "quiet" });
  const take = edit && button("Edit", () => edit(editable), { class: "quiet", hidden: true });
  const bar = h("progress", { "aria-label": "Progress" });
  const far = h("span", {});
  const progress = h("div", { class: "progress", hidden: true }, bar, far);
  const chunks = h("div", { class: "chunks", role: "log", "aria-label": "Output while it runs", tabindex: "0", hidden: true });
  const outcome = h("div", { class: "outcome", "aria-live": "polite", "aria-busy": "true" });
  const trouble = h("div", {});
  const began = new Date(call().started * 1000);
  const heading = fresh("call");
  const element = h("article", { class: "card", "aria-labelledby": heading },
    h("header", {},
      h("h2", { id: heading }, link ? h("a", { href: `#/tools/${encodeURIComponent(call().name)}` }, call().name) : "Call", " ", h("time", { datetime: began.toISOString() }, began.toLocaleTimeString())),
      status, time, h("span", { class: "grow" }), cancel, take, again),
    disclosure("Arguments", () => code(pretty(call().arguments), "Arguments"), { open: link }),
    progress, chunks, inner(id, signal), outcome, trouble);
  let [seen, fetched, editable] = [0, null, null];
  const tick = setInterval(() => call()?.done || elapse(), 200);
  signal.addEventListener("abort", () => clearInterval(tick));
  const elapse = () => (time.textContent = duration(Math.max(Date.now() / 1000 - Number(call().started), 0)));

  async function update() {
    const now = call();
    label(status, now);
    if (now.done) {
      time.textContent = duration(Number(now.duration));
      clearInterval(tick);
    } else elapse();
    cancel.hidden = now.done;
    again.hidden = !now.done;
    meter(now);
    const news = now.chunks.filter((each) => each.number > seen);
    if (news.length) {
      seen = news.at(-1).number;
      const below = chunks.scrollHeight - chunks.scrollTop - chunks.clientHeight < 40;
      chunks.hidden = false;
      chunks.append(...news.map((each) => (each.type === "text" ? h("span", {}, each.text) : block(each))));
      while (chunks.childElementCount > 500) chunks.firstChild.remove();
      if (below) chunks.scrollTop = chunks.scrollHeight;
    }
    if (now.done && fetched !== now.status) {
      fetched = now.status;
      outcome.ariaBusy = "true";
      const full = await attempt(() => get(`calls/${id}`), trouble);
      if (full) finish(full);
      outcome.ariaBusy = "false";
    }
  }

  function meter(now) {
    progress.hidden = !now.progress || now.done;
    if (!now.progress) return;
    const [done, total, text] = now.progress;
    if (total) [bar.max, bar.value] = [Number(total), Math.min(Number(done), Number(total))];
    else bar.removeAttribute("value");
    far.textContent = `${total ? `${print(done)} of ${print(total)}` : print(done)}${text ? ` · ${text}` : ""}`;
  }

  function finish(full) {
    if (!full.result) return;
    editable = full.edit;
    if (take) take.hidden = false;
    const streamed = full.count > 0 && full.chunks.every((each) => each.type === "text") && full.chunks.map((each) => each.text).join("") === full.result.text;
    chunks.hidden = full.count === 0 || streamed;
    fill(outcome, result(full.result), full.page ? app(full, signal) : null, full.status === "suspended" ? answer() : null,
      disclosure("Use it elsewhere", () => h("div", {}, copyable(full.copies.python, "Python"), full.copies.command ? copyable(full.copies.command, "Command line") : null)));
    ended?.(full.result);
  }

  function answer() {
    const text = h("textarea", { rows: 2, class: "mono", "aria-label": "Answer as JSON", placeholder: "JSON" });
    return h("div", { class: "answer" }, text, button("Send the answer", () => attempt(async () => {
      let value = null;
      try {
        value = parse(text.value);
      } catch {
        throw new Error("The answer has to be JSON");
      }
      await post("resume", { call: id, value });
    }, trouble)));
  }

  on("call", (changed) => changed === id && update(), signal);
  update();
  return element;
}

/** JSON text with line breaks; other text as it is. */
export function pretty(text) {
  try {
    return print(parse(text), "  ");
  } catch {
    return text;
  }
}

/** A list of cards of the page's own calls, the latest first, that grows as calls are made. */
export function cards(wanted, options) {
  const list = h("div", { class: "cards" });
  const shown = new Set();
  const add = (id) => {
    const call = state.calls.get(id);
    if (shown.has(id) || call.parent !== null || !wanted(call)) return;
    shown.add(id);
    list.prepend(card(id, options));
  };
  for (const call of [...state.calls.values()].filter((each) => each.parent === null).slice(-50)) add(call.id);
  on("call", add, options.signal);
  return list;
}

/** The approvals that wait: above whatever is looked at. */
export function approvals(place) {
  const asked = new Map();
  const draw = () => {
    const ids = new Set(state.approvals.map((each) => each.id));
    for (const [id, element] of asked) {
      if (ids.has(id)) continue;
      element.remove();
      asked.delete(id);
    }
    for (const each of state.approvals) {
      if (asked.has(each.id)) continue;
      asked.set(each.id, each.form ? formOf(each) : question(each));
      place.append(asked.get(each.id));
    }
    place.hidden = !asked.size;
  };
  on("approvals", draw);
  draw();
}

function question(each) {
  const trouble = h("div", {});
  const before = print(each.arguments, "  ");
  const text = h("textarea", { class: "mono", rows: Math.min(before.split("\n").length, 12), "aria-label": "What it is called with", spellcheck: "false", value: before });
  const decide = (approve) => () => attempt(() => post("approvals", {
    approval: each.id, approve, arguments: approve && text.value !== before ? text.value : "",
  }), trouble);
  return h("section", { class: "question", "aria-label": `Approval of ${each.tool}` },
    h("h2", {}, h("span", { class: "mono" }, each.tool), " asks for approval"),
    each.reason ? h("p", {}, each.reason) : null, text,
    h("div", { class: "line" }, button("Approve", decide(true), { class: "main" }), button("Deny", decide(false))), trouble);
}

/** A question with a form: what does not fit is told at its field, before it is sent or by the server. */
function formOf(each) {
  const trouble = h("div", {});
  const fields = form(each.form, new RegExp(each.private_names, "i"), true);
  const send = async () => {
    const members = fields.get();
    if (members === null) return;
    const refused = await attempt(() => post("approvals", { approval: each.id, approve: true, members }), trouble);
    if (refused) fields.show(problems(refused.problems));
  };
  const submit = (event) => {
    event.preventDefault();
    send();
  };
  return h("section", { class: "question", "aria-label": `Question of ${each.tool}` },
    h("h2", {}, h("span", { class: "mono" }, each.tool), " asks"),
    each.reason ? h("p", {}, each.reason) : null,
    h("form", { class: "call", novalidate: true, onsubmit: submit }, fields.element,
      h("div", { class: "line" }, h("button", { type: "submit", class: "main" }, "Send"),
        button("Decline", () => attempt(() => post("approvals", { approval: each.id, approve: false }), trouble)))),
    disclosure("What it is called with", () => code(print(each.arguments, "  "), "What it is called with")), trouble);
}
