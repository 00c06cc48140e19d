// The list of tools: as many rows as are seen, however many tools there are.

import { h } from "./dom.js";
import { on, state } from "./api.js";

const PERMISSIONS = { prompt: "asks first", never: "not permitted" };
const ROW = 58;

/** The sidebar: a search, a filter, and the tools. `current()` names the tool that is looked at. */
export function sidebar(current) {
  const search = h("input", {
    type: "search", placeholder: "Search tools", "aria-label": "Search", autocomplete: "off", spellcheck: "false",
    "aria-controls": "tools", oninput: () => filter(true), onkeydown: (event) => fromSearch(event),
  });
  const groups = h("select", { "aria-label": "Show", onchange: () => filter(true) });
  const count = h("p", { class: "count", role: "status" });
  const rows = h("ul", { id: "tools" });
  const space = h("div", { class: "space" }, rows);
  const scroller = h("nav", { class: "scroller", "aria-label": "Tools", onscroll: () => later(), onkeydown: (event) => inList(event) }, space);
  let found = [];
  const index = new WeakMap(); // what is searched of a tool, and its row, as long as the board is the same
  const made = new WeakMap();
  let waiting = false;

  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };

  function filter(fromTop, held) {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = groups.value;
    found = (state.board?.tools ?? []).filter((tool) => {
      if (wanted && !tool.groups.includes(wanted.slice(6)) && tool.pack !== wanted.slice(6)) return false;
      return words.every((word) => hay(tool).includes(word));
    });
    if (words.length) {
      const rank = (tool) => (tool.name.toLowerCase().startsWith(words[0]) ? 0 : tool.name.toLowerCase().includes(words[0]) ? 1 : 2);
      found = found.map((tool) => [rank(tool), tool]).sort((a, b) => a[0] - b[0]).map((pair) => pair[1]);
    }
    if (fromTop) scroller.scrollTop = 0;
    const all = state.board?.tools.length ?? 0;
    count.textContent = found.length === all ? `${all.toLocaleString("en")} tools` : `${found.length.toLocaleString("en")} of ${all.toLocaleString("en")} tools${found.length ? "" : ": nothing fits"}`;
    draw(held);
  }

  function hay(tool) {
    if (!index.has(tool)) index.set(tool, [tool.name, tool.summary, tool.pack ?? "", ...tool.groups, ...tool.tags].join(" ").toLowerCase());
    return index.get(tool);
  }

  /** Show the rows that are seen; `focused` names one that takes the focus. */
  function draw(focused) {
    const first = Math.max(Math.floor(scroller.scrollTop / ROW) - 4, 0);
    const last = Math.min(first + Math.ceil((scroller.clientHeight || 600) / ROW) + 8, found.length);
    space.style.height = `${found.length * ROW}px`;
    rows.style.transform = `translateY(${first * ROW}px)`;
    const shown = found.slice(first, last);
    const names = new Set(shown.map((tool) => tool.name));
    const held = document.activeElement?.dataset?.name;
    const entry = [focused, held, current()].find((name) => names.has(name)) ?? shown[Math.min(4, first)]?.name;
    // A row that stays is not touched: the user may be pressing it.
    const wanted = shown.map((tool, number) => row(tool, first + number, tool.name === entry));
    const staying = new Set(wanted);
    for (const each of [...rows.children]) if (!staying.has(each)) each.remove();
    let at = rows.firstChild;
    for (const each of wanted) {
      if (each === at) at = at.nextSibling;
      else rows.insertBefore(each, at);
    }
    if (focused !== undefined) rows.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function row(tool, number, reachable) {
    if (!made.has(tool)) made.set(tool, fresh(tool));
    const item = made.get(tool);
    const link = item.firstChild;
    item.setAttribute("aria-setsize", found.length);
    item.setAttribute("aria-posinset", number + 1);
    link.tabIndex = reachable ? 0 : -1;
    link.dataset.number = number;
    if (tool.name === current()) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    return item;
  }

  function fresh(tool) {
    const marks = [!tool.offered && "not offered", PERMISSIONS[tool.permission], tool.problem && "broken"].filter(Boolean);
    const said = tool.problem ?? (tool.loaded ? tool.summary : "not loaded yet");
    return h("li", {}, h("a", { href: `#/tools/${encodeURIComponent(tool.name)}`, "data-name": tool.name, class: tool.offered ? "" : "withheld" },
      h("span", { class: "name" }, tool.name), marks.map((mark) => h("span", { class: "mark" }, mark)), h("span", { class: "said" }, said)));
  }

  function go(number) {
    const to = Math.min(Math.max(number, 0), found.length - 1);
    if (to < 0) return;
    const top = to * ROW;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW - scroller.clientHeight;
    draw(found[to].name);
  }

  function fromSearch(event) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      go(0);
    } else if (event.key === "Enter" && found.length) {
      location.hash = `#/tools/${encodeURIComponent(found[0].name)}`;
    }
  }

  function inList(event) {
    const at = Number(event.target.dataset?.number);
    if (Number.isNaN(at)) return;
    const page = Math.max(Math.floor(scroller.clientHeight / ROW) - 1, 1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: found.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0) search.focus();
    else go(to);
  }

  function fill() {
    const kept = groups.value;
    const packs = state.board.packs.filter((pack) => pack.tools);
    groups.replaceChildren(
      h("option", { value: "" }, "All tools"),
      state.board.groups.length ? h("optgroup", { label: "Groups" }, state.board.groups.map((each) => h("option", { value: `group:${each.name}` }, each.name + (each.active ? "" : " (inactive)")))) : "",
      packs.length ? h("optgroup", { label: "Packs" }, packs.map((each) => h("option", { value: `packs:${each.name}` }, each.name))) : "",
    );
    groups.value = kept;
    if (groups.selectedIndex < 0) groups.value = "";
    groups.hidden = groups.options.length === 1;
    filter(false, rows.contains(document.activeElement) ? document.activeElement.dataset.name : undefined);
  }

  on("board", fill);
  new ResizeObserver(later).observe(scroller);
  addEventListener("hashchange", () => draw());
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    if (search.checkVisibility()) return search.focus();
    addEventListener("hashchange", () => search.focus(), { once: true });
    location.hash = "#/"; // on a telephone it has a view of its own
  });
  return [h("div", { class: "find" }, search, groups, count), scroller];
}
