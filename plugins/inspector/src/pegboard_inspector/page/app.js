// The page: which view is shown, and what is above all of them.

import { get, listen, on, post, state } from "./api.js";
import { sidebar } from "./board.js";
import { approvals, attempt, cards } from "./calls.js";
import { cost } from "./cost.js";
import { button, code, disclosure, fill, h } from "./dom.js";
import { earlier } from "./earlier.js";
import { print } from "./json.js";
import { FEATURES, isThere, source } from "./sources.js";
import { tool } from "./tool.js";

const main = document.getElementById("main");
const VIEWS = { tools: ["Tools", "#/"], calls: ["Calls", "#/calls"], model: ["Model", "#/model"], board: ["Board", "#/board"], ...Object.fromEntries(Object.entries(FEATURES).map(([name, label]) => [name, [label, `#/${name}`]])) };
const links = new Map(Object.entries(VIEWS).map(([name, [label, href]]) => [name, h("a", { href }, label)]));
let ending = new AbortController();
let shown = null;

const route = () => {
  const [view, name] = location.hash.replace(/^#\/?/, "").split("/");
  return [view in VIEWS ? view : "tools", name === undefined || name === "" ? null : decoded(name)];
};

const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // only a person can have written it
  }
};

async function show({ moved = false } = {}) {
  const [view, name] = route();
  ending.abort();
  ending = new AbortController();
  const { signal } = ending;
  document.body.dataset.view = view === "tools" && name === null ? "list" : view;
  for (const [each, link] of links) {
    if (each === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name ?? VIEWS[view][0]} · Pegboard inspector`;
  shown = null;
  if (view === "tools" && name === null) fill(main, welcome());
  else if (view === "tools") shown = await tool(name, main, signal, moved);
  else if (view === "calls") fill(main, h("h1", {}, "Calls"), state.calls.size ? "" : h("p", { class: "hint" }, "Nothing was called yet."), cards(() => true, { signal, link: true }), earlier(signal));
  else if (view in FEATURES) await source(view, name, main, signal);
  else if (view === "model") await model(name, signal);
  else await board(signal);
  if (moved && !signal.aborted && document.body.dataset.view !== "list") {
    main.scrollTop = 0;
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

function welcome() {
  const found = state.board;
  if (!found) return h("p", { class: "hint" }, "Loading the board.");
  const offered = found.tools.filter((each) => each.offered).length;
  const problems = found.problems.length;
  return h("div", { class: "welcome" }, h("h1", {}, found.target ?? "The installed board"),
    h("p", {}, `${offered.toLocaleString("en")} tools are offered, of ${found.tools.length.toLocaleString("en")} on the board.`),
    problems ? h("p", {}, h("a", { href: "#/board" }, problems === 1 ? "There is a problem." : `There are ${problems} problems.`)) : null,
    found.tools.length ? choose() : h("p", { class: "hint" }, "There is nothing to call. ", found.target ? "" : ["A program's own toolkit is shown by ", h("code", { class: "mono" }, "--toolkit MODULE:NAME"), "."]));
}

const choose = () => h("p", { class: "hint" }, "Choose a tool to read what it says and to call it. ", h("kbd", {}, "/"), " goes to the search, ", h("kbd", {}, "↓"), " to the tools.");

async function model(name, signal) {
  const dialects = state.board?.dialects ?? [];
  const chosen = name ?? dialects[0];
  const place = h("div", { "aria-live": "polite" });
  fill(main, h("h1", {}, "What a model gets"),
    h("p", { class: "hint" }, dialects.length ? "The list of tools that a request holds, in the format of each provider. A token is taken to be four characters." : "No pack that is installed brings a dialect. pegboard-dialects has those of the big providers."),
    h("nav", { class: "tabs", "aria-label": "Dialects" }, dialects.map((each) => h("a", { href: `#/model/${encodeURIComponent(each)}`, "aria-current": each === chosen ? "page" : null }, each))), place);
  if (!chosen) return;
  const found = await attempt(() => get(`dialects/${encodeURIComponent(chosen)}`), place);
  if (!found || signal.aborted) return;
  const list = h("div", { class: "definitions" });
  let at = 0;
  const more = button("Show more", () => grow(), { class: "quiet" });
  const grow = () => {
    const fresh = found.tools.slice(at, at + 100);
    list.append(...fresh.map((each) => disclosure(`${title(each.text)} · about ${each.tokens.toLocaleString("en")} tokens`, () => code(each.text, "Definition"))));
    at += fresh.length;
    more.hidden = at >= found.tools.length;
  };
  grow();
  fill(place, h("p", {}, `${found.tools.length.toLocaleString("en")} definitions, about `, h("strong", {}, found.tokens.toLocaleString("en")), " tokens"),
    found.losses.length ? disclosure(`It does not carry everything: ${found.losses.length}`, () => h("ul", {}, found.losses.map((each) => h("li", {}, each)))) : "", list, more);
}

const title = (text) => /"name": ("(?:[^"\\]|\\.)*")/.exec(text)?.[1]?.slice(1, -1) ?? "definitions";

async function board(signal) {
  const trouble = h("div", {});
  const stats = h("div", { "aria-live": "polite" });
  const place = h("div", {});
  fill(main, h("div", { class: "line" }, h("h1", {}, "Board"), button("Reload packs", () => attempt(async () => {
    const changes = await post("reload");
    const said = [...changes.added.map((each) => `+ ${each}`), ...changes.removed.map((each) => `− ${each}`)];
    fill(trouble, h("p", { class: "note", role: "status" }, said.length ? said.join(", ") : "Nothing has changed."));
  }, trouble))), trouble, place, stats);
  const costs = cost(signal);
  const draw = () => state.board && fill(place, ...boardParts(trouble, costs));
  draw();
  on("board", draw, signal);
  const count = async () => {
    const found = await attempt(() => get("stats"), stats);
    if (found && !signal.aborted) fill(stats, ...statsParts(found));
  };
  on("call", (id) => state.calls.get(id)?.done && count(), signal);
  await count();
}

function boardParts(trouble, costs) {
  const { groups, packs, problems, sources } = state.board;
  const flip = (group) => (event) => attempt(() => post("groups", { name: group.name, active: event.target.checked }), trouble);
  const withheld = packs.flatMap((pack) => pack.not_offered.map((each) => [pack.name, each.names.join(", "), each.reason]));
  return [
    h("h2", {}, "Problems"), problems.length ? h("ul", { class: "problems" }, problems.map((each) => h("li", {}, each))) : h("p", { class: "hint" }, "None."),
    groups.length ? h("h2", {}, "Groups") : "",
    groups.length ? h("ul", { class: "groups" }, groups.map((group) => h("li", {}, h("label", {}, h("input", { type: "checkbox", checked: group.active, onchange: flip(group) }), group.name), h("span", { class: "hint" }, group.description)))) : "",
    groups.length ? h("p", { class: "hint" }, "They are switched for this page alone.") : "",
    costs,
    h("h2", {}, "Packs"), grid(["Pack", "From", "State", "Tools", "Reason"], [...packs].sort((a, b) => (b.state === "active") - (a.state === "active")).map((each) => [each.name, each.origin, each.state, each.tools, each.reason])),
    withheld.length ? h("h2", {}, "Tools that packs do not offer here") : "",
    withheld.length ? grid(["Pack", "Tools", "Reason"], withheld) : "",
    sources.length ? h("h2", {}, "Sources that change") : "",
    sources.length ? grid(["Source", "Tools", "Problems"], sources.map((each) => [each.name, each.tools, each.problems.join(" ")])) : "",
  ];
}

function statsParts(found) {
  const rows = Object.entries(found.tools).map(([name, each]) => [
    name, each.calls, Object.entries(each.statuses).map(([status, count]) => `${status} ${count}`).join(", "),
    each.calls ? `${((1000 * Number(each.seconds)) / each.calls).toFixed(1)} ms` : "",
  ]);
  return [h("h2", {}, "Calls of this toolkit"),
    h("p", { class: "hint" }, `${found.running} running, ${found.waiting} waiting, ${found.abandoned_threads} abandoned threads`),
    rows.length ? grid(["Tool", "Calls", "Ended as", "Mean"], rows) : ""];
}

const grid = (columns, rows) => h("div", { class: "scrolled", tabindex: "0", role: "group", "aria-label": columns[0] },
  h("table", {}, h("thead", {}, h("tr", {}, columns.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((each) => h("td", { class: typeof each === "number" ? "number" : null }, String(each))))))));

for (const each of Object.keys(FEATURES)) links.get(each).hidden = true;
document.getElementById("views").append(...links.values());
document.getElementById("side").append(...sidebar(() => (route()[0] === "tools" ? route()[1] : null)));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
approvals(document.getElementById("approvals"));
addEventListener("hashchange", () => show({ moved: true }));

const line = (message) => (document.getElementById("line").textContent = message);
on("line", line);
on("failed", line);
on("held", () => line(state.held ? `${state.held.name} holds the event loop: other calls wait (${state.held.where})` : ""));
on("board", async () => {
  const count = state.board.problems.length;
  for (const each of Object.keys(FEATURES)) links.get(each).hidden = !isThere(each);
  links.get("board").replaceChildren("Board", count ? h("span", { class: "badge", title: "problems" }, String(count)) : "");
  const [view, name] = route();
  if (view === "model" || view in FEATURES) show();
  else if (view === "tools" && name === null) fill(main, welcome());
  else if (view === "tools") {
    const now = await get(`tools/${encodeURIComponent(name)}`).catch(() => null);
    if (print(now) !== print(shown)) show(); // what stands in the form is kept
  }
});
show();
listen();
