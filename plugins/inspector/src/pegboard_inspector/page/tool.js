// One tool: what it says, the form to call it with, its calls, and what a model gets of it.

import { get, on, post, state } from "./api.js";
import { attempt, cards } from "./calls.js";
import { button, code, disclosure, fill, fresh, h } from "./dom.js";
import { form, problems } from "./form.js";
import { parse, print } from "./json.js";

const EFFECTS = { read_only: "read-only", destructive: "destructive", idempotent: "idempotent", open_world: "open world" };

/** What stood in the forms, by tool, for as long as the tab is open. */
const drafts = {
  get: (name) => JSON.parse(sessionStorage.getItem(`draft ${name}`)),
  set: (name, draft) => {
    try {
      sessionStorage.setItem(`draft ${name}`, JSON.stringify(draft));
    } catch {
      sessionStorage.removeItem(`draft ${name}`); // more than a browser keeps, such as a picture
    }
  },
};

/** The page of a tool; `signal` ends with it. */
export async function tool(name, place, signal, moved) {
  let facts = null;
  // What was there before is removed at once: the user must not run one tool and mean another.
  if (moved) fill(place, back(), h("header", { class: "about" }, h("h1", {}, name)));
  try {
    facts = await get(`tools/${encodeURIComponent(name)}`);
  } catch (error) {
    if (!signal.aborted) place.replaceChildren(back(), h("h1", {}, name), h("p", { class: "failed" }, error.message));
    return null;
  }
  if (signal.aborted) return null;
  const editor = arguments_(facts);
  const trouble = h("div", {});
  const run = button("Run", () => start(), { class: "main", title: "Ctrl + Enter" });
  let [mine, last] = [null, null]; // a call may have ended before its id is known here
  const start = async () => {
    const text = editor.text();
    if (text === null) return;
    trouble.replaceChildren();
    mine = (await attempt(() => post("calls", { name: facts.name, arguments: text }), trouble))?.id ?? null;
    if (last?.call_id === mine) editor.show(last);
    if (mine !== null && state.calls.has(mine)) calls.firstElementChild?.scrollIntoView({ block: "nearest" });
  };
  const ended = (result) => {
    last = result;
    if (result.call_id === mine) editor.show(result);
  };
  const calls = cards((call) => call.name === facts.name, { edit: editor.take, ended, signal });
  const keep = () => drafts.set(facts.name, editor.draft());
  signal.addEventListener("abort", keep);
  addEventListener("pagehide", keep, { signal });
  fill(place,
    back(), head(facts), warnings(facts, trouble),
    h("form", { class: "call", onsubmit: (event) => event.preventDefault(), onkeydown: (event) => {
      const submits = event.key === "Enter" && (event.ctrlKey || event.metaKey || event.target.matches("input:not([type=checkbox], [type=file])"));
      if (submits) {
        event.preventDefault();
        start();
      }
    } }, editor.element(run, trouble)),
    calls, model(facts),
  );
  return facts;
}

const back = () => h("p", { class: "back" }, h("a", { href: "#/" }, "All tools"));

function head(facts) {
  const effects = Object.entries(facts.hints).map(([hint, said]) => (said ? EFFECTS[hint] : `not ${EFFECTS[hint]}`));
  if (facts.approval !== "never") effects.push(facts.approval === "always" ? "asks for approval" : "may ask for approval");
  if (facts.deferred) effects.push("deferred");
  if (facts.for_apps_only) effects.push("for pages alone");
  const hidden = facts.hidden.map((each) => `${each.name} (${each.secret ? "***" : each.source})`).join(", ");
  return h("header", { class: "about" }, h("h1", {}, facts.name),
    h("p", { class: "marks" }, [`from ${facts.origin}`, ...facts.groups.map((group) => `group ${group}`), ...facts.tags.map((tag) => `#${tag}`), ...effects].map((mark) => h("span", { class: "mark" }, mark))),
    h("p", { class: "description" }, facts.description || "It has no description."),
    hidden ? h("p", { class: "hint" }, `Filled in by the program, unseen by the model: ${hidden}`) : null);
}

function warnings(facts, trouble) {
  const inactive = state.board?.groups.filter((group) => facts.groups.includes(group.name) && !group.active) ?? [];
  if (facts.permission === "never") return h("p", { class: "note" }, "It is not permitted to run: its permission is never.");
  if (facts.offered || !inactive.length) return null;
  return h("p", { class: "note" }, "It is not offered now, because its group is inactive. ",
    inactive.map((group) => button(`Activate ${group.name}`, () => attempt(() => post("groups", { name: group.name, active: true }), trouble), { class: "quiet" })));
}

/** The arguments: a form, and JSON as the other view of the same. */
function arguments_(facts) {
  const fields = form(facts.parameters, new RegExp(facts.private_names, "i"));
  const label = fresh("raw");
  const raw = h("textarea", { id: label, class: "mono", rows: 8, spellcheck: "false" });
  const trouble = h("p", { class: "error", role: "alert", hidden: true });
  const json = h("div", { hidden: true }, h("label", { for: label }, "Arguments as JSON"), raw);
  const view = (name) => h("button", { type: "button", "aria-pressed": "false", onclick: () => show(name) }, name);
  const views = { Form: view("Form"), JSON: view("JSON") };
  let current = "Form";
  const tell = (text) => {
    trouble.textContent = text;
    trouble.hidden = !text;
  };
  const read = () => {
    const value = parse(raw.value.trim() || "{}");
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("arguments are a JSON object");
    return value;
  };
  function show(name) {
    tell("");
    if (name !== current) {
      if (name === "JSON") {
        raw.value = print(fields.peek(), "  ");
      } else {
        try {
          fields.set(read());
        } catch (error) {
          return tell(`The form cannot show this: ${error.message}`);
        }
      }
    }
    current = name;
    for (const [each, element] of Object.entries(views)) element.setAttribute("aria-pressed", String(each === name));
    json.hidden = name !== "JSON";
    fields.element.hidden = name !== "Form";
  }
  show("Form");
  const take = (text, withheld = []) => {
    tell("");
    try {
      fields.set(parse(text || "{}"));
      for (const path of withheld) fields.withhold(path);
      if (current === "JSON") raw.value = print(parse(text || "{}"), "  ");
    } catch {
      raw.value = text;
      show("JSON");
      raw.value = text;
    }
    if (withheld.some((path) => !path.length || current === "JSON")) tell(`Secrets are not put back; enter again: ${withheld.map((path) => path.join(".") || "all of it").join(", ")}`);
  };
  const parts = [h("div", { class: "line" }, h("h2", {}, "Arguments"), h("div", { class: "switch", role: "group", "aria-label": "View of the arguments" }, Object.values(views)),
      facts.examples.map((example, at) => button(facts.examples.length > 1 ? `Example ${at + 1}` : "Example", () => take(print(example)), { class: "quiet" }))),
    fields.empty ? h("p", { class: "hint" }, "It takes no arguments.") : null, fields.element, json, trouble];
  const element = h("section", { class: "arguments", "aria-label": "Arguments" });
  const draft = drafts.get(facts.name);
  if (draft) take(draft.arguments, draft.withheld);
  return {
    element: (run, below) => {
      fill(element, ...parts, h("div", { class: "line" }, run), below);
      return element;
    },
    take: (edited) => {
      take(edited.arguments, edited.withheld);
      element.scrollIntoView({ block: "start" });
      element.querySelector("input, textarea, select")?.focus({ preventScroll: true });
    },
    /** JSON text of the arguments; null where a field says that it has none. As JSON they are sent as they are written. */
    text: () => {
      if (current === "JSON") return raw.value;
      const value = fields.get();
      return value === null ? null : print(value);
    },
    /** What is put aside: no secret, and no text of which it is not known where in it a secret stands. */
    draft: () => {
      if (current === "JSON") {
        try {
          fields.set(read());
        } catch {
          return facts.may_hold_secrets ? null : { arguments: raw.value, withheld: [] };
        }
      }
      const withheld = fields.secrets();
      return { arguments: print(fields.peek(false)), withheld };
    },
    show: (result) => {
      if (current !== "Form" || result.status !== "invalid") return;
      fields.show(problems(result.error?.details.problems ?? []));
    },
  };
}

/** What a model gets of the tool. */
function model(facts) {
  return h("section", { class: "model", "aria-label": "What a model gets" }, h("h2", {}, "What a model gets"),
    disclosure("JSON Schema of the arguments", () => code(print(facts.parameters, "  "), "JSON Schema of the arguments")),
    facts.returns ? disclosure("JSON Schema of the result", () => code(print(facts.returns, "  "), "JSON Schema of the result")) : null,
    facts.model.map((each) => {
      if (each.problem) return h("p", { class: "failed" }, `${each.dialect}: ${each.problem}`);
      const tokens = each.text ? `about ${each.tokens.toLocaleString("en")} tokens` : "not offered now";
      return disclosure(`${each.dialect} · ${tokens}${each.losses.length ? ` · loses ${each.losses.length}` : ""}`, () =>
        h("div", {}, each.losses.map((loss) => h("p", { class: "note" }, loss)), code(each.text, each.dialect)));
    }));
}
