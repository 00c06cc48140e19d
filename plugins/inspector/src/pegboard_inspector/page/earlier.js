// The calls before those of this page, where a journal has recorded them.

import { get } from "./api.js";
import { attempt, duration, pretty, tone, WORDS } from "./calls.js";
import { code, disclosure, fill, fresh, h } from "./dom.js";

/** The last recorded calls, the latest first, as the journal keeps them; nothing where there is none. */
export function earlier(signal) {
  const place = h("div", {});
  attempt(async () => {
    const { calls } = await get("earlier");
    if (calls.length && !signal.aborted) fill(place, h("h2", {}, "Earlier calls"), h("p", { class: "hint" }, "What the journal keeps of them."), h("div", { class: "cards" }, calls.map(card)));
  }, place);
  return place;
}

function card(call) {
  const heading = fresh("call");
  const began = new Date(Number(call.started) * 1000);
  return h("article", { class: "card", "aria-labelledby": heading },
    h("header", {},
      h("h2", { id: heading }, h("a", { href: `#/tools/${encodeURIComponent(call.name)}` }, call.name), " ", h("time", { datetime: began.toISOString() }, began.toLocaleString())),
      h("span", { class: "status", "data-tone": tone(call.status) }, WORDS[call.status] ?? call.status),
      h("span", { class: "time" }, call.duration === null ? "" : duration(Number(call.duration)))),
    call.notes.map((each) => h("p", { class: "note" }, each)),
    kept("Arguments", call.arguments), kept("Result", call.result));
}

const kept = (label, text) => (text ? disclosure(label, () => code(pretty(text), label)) : null);
