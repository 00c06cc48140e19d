// Results as what they are: text, tables, pictures, sound, links, files.

import { button, code, disclosure, h, outward } from "./dom.js";
import { isNumber, isObject, parse, print } from "./json.js";

// What a browser shows without running anything. A drawing in SVG is a document, so it is a file here.
const SHOWN = {
  image: /^image\/(png|jpeg|gif|webp|avif|bmp)$/,
  audio: /^audio\/(mpeg|mp3|mp4|aac|ogg|opus|wav|x-wav|wave|webm|flac)$/,
  video: /^video\/(mp4|webm|ogg)$/,
};
const BASE64 = /^[A-Za-z0-9+/\s]*={0,2}$/;
const PAGE = 100; // rows of a table at a time

/** A content block. */
export function block(each) {
  if (each.type === "text") return code(each.text, "Result");
  if (each.type === "data") return data(each.data);
  if (each.type === "link") return h("p", {}, outward(each.url, each.title || each.url), each.description ? ` ${each.description}` : "");
  if (each.url) return h("p", {}, `${each.type}: `, outward(each.url));
  return media(each) ?? file(each);
}

function media(each) {
  const type = String(each.media_type ?? "").toLowerCase();
  if (!SHOWN[each.type]?.test(type) || !BASE64.test(each.data)) return null;
  const src = `data:${type};base64,${each.data.replace(/\s/g, "")}`;
  if (each.type === "image") return h("img", { src, alt: `Image, ${type}`, class: "picture" });
  return h(each.type, { src, controls: true, "aria-label": `${each.type}, ${type}` });
}

function file(each) {
  const bytes = Math.floor((each.data?.replace(/\s/g, "").length ?? 0) * 0.75);
  const name = (each.name ?? `${each.type}.bin`).replace(/[^\w.-]+/g, "_").slice(-80);
  const save = button(`Save ${name}`, async () => {
    // As bytes of no kind: a browser must not open it as a page.
    const raw = Uint8Array.from(atob(each.data.replace(/\s/g, "")), (char) => char.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([raw], { type: "application/octet-stream" }));
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }, { class: "quiet" });
  return h("p", {}, save, ` ${each.media_type ?? "of no known type"}, about ${bytes.toLocaleString("en")} bytes`);
}

/** JSON data: a table where it is one, else as JSON. */
export function data(value) {
  const columns = tabular(value);
  return columns ? table(value, columns) : code(print(value, "  "), "JSON");
}

function tabular(value) {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isObject)) return null;
  const columns = [...new Set(value.slice(0, 1000).flatMap(Object.keys))];
  return columns.length > 0 && columns.length <= 30 ? columns : null;
}

function table(rows, columns) {
  const body = h("tbody", {});
  const cell = (value) => h("td", { class: isNumber(value) ? "number" : null }, value === undefined ? "" : typeof value === "string" ? value : print(value));
  let shown = 0;
  const more = button("Show more rows", () => fill(), { class: "quiet" });
  const fill = () => {
    const fresh = rows.slice(shown, shown + PAGE);
    body.append(...fresh.map((row) => h("tr", {}, columns.map((column) => cell(row[column])))));
    shown += fresh.length;
    more.hidden = shown >= rows.length;
  };
  fill();
  return h("div", {}, h("div", { class: "scrolled", tabindex: "0", role: "group", "aria-label": "Table" },
    h("table", {}, h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column)))), body)), more);
}

/** A whole result: what a model reads, then what it does not. */
export function result(found) {
  const parts = [];
  if (found.error) {
    parts.push(h("p", { class: "failed" }, found.error.message));
    const { reason, remedy } = found.error.details;
    if (reason) parts.push(h("p", { class: "hint" }, `Reason: ${reason}`));
    if (remedy) parts.push(h("p", { class: "hint" }, `Remedy: ${remedy}`));
    if (found.error.traceback) parts.push(disclosure("Traceback", () => code(found.error.traceback, "Traceback")));
  }
  for (const note of found.notes) parts.push(h("p", { class: "note" }, note));
  if (!found.error) parts.push(...content(found));
  else if (found.metadata.partial !== undefined) parts.push(code(found.text, "Partial output"));
  for (const each of found.attachments) parts.push(h("p", { class: "hint" }, "Attachment, for the program alone"), block(each));
  if (found.logs.length) parts.push(disclosure("Log", () => code(found.logs.join("\n"), "Log")));
  if (Object.keys(found.metadata).length) parts.push(disclosure("Metadata, for the program alone", () => code(print(found.metadata, "  "), "Metadata")));
  parts.push(disclosure("Everything, as JSON", () => code(print(found, "  "), "Result as JSON")));
  return h("div", { class: "result" }, parts);
}

function content(found) {
  const plain = found.content.every((each) => each.type === "text");
  // Text that is the data is shown as data; the model reads the same.
  if (plain && found.data !== null && typeof found.data === "object" && same(found.text, found.data)) return [data(found.data)];
  return found.content.length ? found.content.map(block) : [h("p", { class: "hint" }, "The result is empty.")];
}

function same(text, value) {
  try {
    return print(parse(text)) === print(value);
  } catch {
    return false;
  }
}
