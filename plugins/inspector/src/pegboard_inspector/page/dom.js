// Elements. Text from outside only ever becomes text: there is no way to markup in this file, and no other file has one.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "indeterminate"]);

/** An element with attributes (`on...` are listeners) and children: elements and text. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put these in the place of what is there. */
export const fill = (place, ...children) => place.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));

/** A button that submits nothing. */
export function button(label, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, label);
}

/** A link to another place, if a browser may safely go there; else its text. */
export function outward(url, text = url) {
  let parsed = null;
  try {
    parsed = new URL(url);
  } catch {
    return text;
  }
  if (!["http:", "https:"].includes(parsed.protocol)) return text;
  return h("a", { href: parsed.href, target: "_blank", rel: "noopener noreferrer nofollow" }, text);
}

let numbers = 0;

/** An id that nothing else has. */
export const fresh = (what) => `${what}-${(numbers += 1)}`;

/** A part of the page that opens; what is in it is made when it is opened first. */
export function disclosure(summary, make, attributes = {}) {
  const details = h("details", attributes, h("summary", {}, summary));
  details.addEventListener("toggle", () => details.open && details.childElementCount === 1 && details.append(make()));
  if (details.open) details.append(make());
  return details;
}

/** Text with a button that copies it. */
export function copyable(text, label) {
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select it and copy";
    }
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  }, { class: "quiet small", "aria-label": `Copy ${label}` });
  return h("figure", { class: "code" }, h("figcaption", {}, label, copy), code(text));
}

const SHOWN = 100_000; // characters of one text: more would stop the page for a while

/** Text as it is, in a box that scrolls. */
export function code(text, label = "Text") {
  const pre = h("pre", { tabindex: "0", role: "group", "aria-label": label }, text.slice(0, SHOWN));
  if (text.length <= SHOWN) return pre;
  const rest = text.length - SHOWN;
  const more = button(`Show ${rest.toLocaleString("en")} more characters`, () => {
    pre.append(text.slice(SHOWN));
    more.remove();
  }, { class: "quiet" });
  return h("div", {}, pre, more);
}
