// What live sources have beside tools: resources, prompts and a log.

import { get, on, post, state } from "./api.js";
import { block } from "./blocks.js";
import { attempt } from "./calls.js";
import { button, fill, fresh, h } from "./dom.js";

/** The views that a source may have, with their labels. */
export const FEATURES = { resources: "Resources", prompts: "Prompts", log: "Log" };

const having = (feature) => (state.board?.sources ?? []).filter((each) => each.features.includes(feature)).map((each) => each.name);

/** Whether any source has it. */
export const isThere = (feature) => having(feature).length > 0;

/** One of the views; `name` is the source that is looked at, the first one by default. */
export async function source(feature, name, main, signal) {
  const names = having(feature);
  const chosen = name ?? names[0];
  const place = h("div", { class: "records" });
  fill(main, h("h1", {}, FEATURES[feature]),
    names.length > 1 ? h("nav", { class: "tabs", "aria-label": "Sources" }, names.map((each) => h("a", { href: `#/${feature}/${encodeURIComponent(each)}`, "aria-current": each === chosen ? "page" : null }, each))) : "",
    place);
  if (!names.includes(chosen)) return fill(place, h("p", { class: "hint" }, state.board ? "No source has one now." : "Loading the board."));
  await { resources, prompts, log }[feature](chosen, place, signal);
}

async function resources(name, place, signal) {
  const found = await attempt(() => get(`resources/${encodeURIComponent(name)}`), place);
  if (!found || signal.aborted) return;
  fill(place, found.resources.length || found.templates.length ? "" : h("p", { class: "hint" }, "It lists none."),
    found.resources.map((each) => record(each, each.uri, (result) => read(name, each.uri, result))),
    found.templates.length ? h("h2", {}, "Templates") : "", found.templates.map((each) => template(name, each)));
}

const read = (name, uri, result) => attempt(async () => {
  const found = await post("resource", { source: name, uri });
  fill(result, found.content.length ? found.content.map(block) : h("p", { class: "hint" }, "It is empty."));
}, result);

/** A resource or a prompt: what it says of itself, and a button that shows what it holds. */
function record(each, title, open, { label = "Read", fields = "", named = each.name } = {}) {
  const result = h("div", { class: "outcome", "aria-live": "polite" });
  const heading = fresh("record");
  const act = button(label, async () => {
    act.disabled = true;
    await open(result);
    act.disabled = false;
  }, { class: "main", "aria-label": `${label} ${named}` });
  return h("article", { class: "card", "aria-labelledby": heading },
    h("header", {}, h("h2", { id: heading }, each.title ?? each.name), h("span", { class: "grow" }), act),
    title ? h("p", { class: "mono hint" }, title, each.mimeType ? ` · ${each.mimeType}` : "") : null,
    each.description ? h("p", { class: "description" }, each.description) : null, fields, result);
}

function template(name, each) {
  const uri = h("input", { type: "text", class: "mono", value: each.uriTemplate, "aria-label": `URI of ${each.name}`, spellcheck: "false" });
  return record(each, null, (result) => read(name, uri.value, result), { fields: uri });
}

async function prompts(name, place, signal) {
  const found = await attempt(() => get(`prompts/${encodeURIComponent(name)}`), place);
  if (!found || signal.aborted) return;
  fill(place, found.prompts.length ? found.prompts.map((each) => prompt(name, each)) : h("p", { class: "hint" }, "It lists none."));
}

function prompt(name, each) {
  const inputs = (each.arguments ?? []).map((argument) => [argument, h("textarea", { id: fresh("argument"), rows: 1 })]);
  const fields = h("div", { class: "fields" }, inputs.map(([argument, input]) => h("div", { class: "field" },
    h("div", { class: "head" }, h("label", { for: input.id }, argument.name), argument.required ? h("span", { class: "flag" }, "required") : null),
    argument.description ? h("p", { class: "hint" }, argument.description) : null, input)));
  const open = (result) => attempt(async () => {
    const filled = inputs.filter(([argument, input]) => input.value !== "" || argument.required);
    const sent = Object.fromEntries(filled.map(([argument, input]) => [argument.name, input.value]));
    const { messages } = await post("prompt", { source: name, name: each.name, arguments: sent });
    fill(result, messages.length ? messages.map((message) => h("section", { "aria-label": message.role }, h("p", { class: "hint" }, message.role), block(message.content))) : h("p", { class: "hint" }, "It is empty."));
  }, result);
  return record(each, each.title && each.title !== each.name ? each.name : null, open, { label: "Get", fields });
}

async function log(name, place, signal) {
  const rows = h("div", { class: "log", role: "log", "aria-label": "Log", tabindex: "0" });
  const hint = h("p", { class: "hint" }, "");
  const trouble = h("div", {});
  fill(place, hint, rows, trouble);
  let [last, drawing, again] = [0, false, false];
  const draw = async () => {
    if (drawing) return (again = true);
    drawing = true;
    do {
      again = false;
      const found = await attempt(() => get(`logs/${encodeURIComponent(name)}`, JSON.parse), trouble);
      if (!found || signal.aborted) break;
      const below = rows.scrollHeight - rows.scrollTop - rows.clientHeight < 40;
      const news = found.lines.filter((each) => each.number > last);
      if (found.lines.length && found.lines.at(-1).number < last) fill(rows, ...found.lines.map(line)); // a new source
      else rows.append(...news.map(line));
      while (rows.childElementCount > found.lines.length) rows.firstChild.remove();
      last = found.lines.at(-1)?.number ?? 0;
      hint.textContent = last === 0 ? "Nothing was written yet." : last > found.lines.length ? `The last ${found.lines.length.toLocaleString("en")} of ${last.toLocaleString("en")} lines.` : `${last.toLocaleString("en")} ${last === 1 ? "line" : "lines"}.`;
      if (below) rows.scrollTop = rows.scrollHeight;
    } while (again);
    drawing = false;
  };
  on("logs", draw, signal);
  await draw();
}

const BAD = new Set(["error", "critical", "alert", "emergency"]);

const line = (each) => h("p", { class: BAD.has(each.level) ? "failed" : null },
  h("time", { datetime: new Date(each.time * 1000).toISOString() }, new Date(each.time * 1000).toLocaleTimeString()),
  h("span", { class: "mark" }, each.level ?? each.source), h("span", {}, each.text));
