// What the last change of the tools cost a provider's cache.

import { get, on, state } from "./api.js";
import { attempt } from "./calls.js";
import { fill, h } from "./dom.js";

const LISTED = 20; // of the changes
let chosen = null; // the dialect, for as long as the tab is open

/** The part of the board for it; there is nothing in it before the first change. `signal` ends with it. */
export function cost(signal) {
  const picker = h("select", { onchange: () => pick() });
  const numbers = h("div", { "aria-live": "polite" });
  const element = h("section", { class: "cost", "aria-label": "Cost of the last change", hidden: true },
    h("h2", {}, "Cost of the last change"), h("label", {}, "Dialect", picker), numbers);
  let draws = 0;
  const pick = () => {
    chosen = picker.value;
    return draw();
  };

  async function draw() {
    const dialects = state.board?.dialects ?? [];
    if (!dialects.includes(chosen)) chosen = dialects[0] ?? null;
    if (chosen === null) return (element.hidden = true);
    picker.replaceChildren(...dialects.map((each) => h("option", { value: each }, each)));
    picker.value = chosen;
    const mine = (draws += 1);
    const found = await attempt(() => get(`costs/${encodeURIComponent(chosen)}`, JSON.parse), numbers);
    if (signal.aborted || mine !== draws) return; // another one was asked for meanwhile
    element.hidden = found === null && !numbers.querySelector(".failed");
    if (found) fill(numbers, ...parts(found));
  }

  on("board", draw, signal);
  draw();
  return element;
}

function parts({ changes, definitions, bytes, tokens }) {
  const more = changes.length - LISTED;
  const [of, whole] = tokens.map((each) => each.toLocaleString("en"));
  return [
    h("p", {}, h("strong", {}, `${definitions[0].toLocaleString("en")} of ${definitions[1].toLocaleString("en")} definitions`),
      `, ${size(bytes[0])} of ${size(bytes[1])}, about ${of} of ${whole} tokens`),
    h("p", { class: "hint" }, "So much of the request before the change is still a prefix of the request now, which a provider's cache keeps. A token is taken to be four characters."),
    h("ul", {}, changes.slice(0, LISTED).map((each) => h("li", {}, `${each.kind} `, h("code", { class: "mono" }, each.tool), `: ${each.reason}`)),
      more > 0 ? h("li", {}, `and ${more.toLocaleString("en")} more`) : null),
  ];
}

const size = (bytes) => (bytes < 1000 ? `${bytes} bytes` : `${(bytes / 1000).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })} kB`);
