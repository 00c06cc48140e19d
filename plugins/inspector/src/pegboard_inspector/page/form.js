// Forms: a field for whatever a JSON Schema says. A field gives a value, takes one, and shows what is wrong with it.

import { button, fresh, h } from "./dom.js";
import { isObject, Num, parse, print } from "./json.js";
import { bounds, branches, choices, fits, kind, resolved, unfit, words } from "./schema.js";

/** What a field gives that says nothing. */
export const LEFT_OUT = Symbol("left out");

const DEEPEST = 6; // a schema that holds itself has no end: from there on it is JSON

/** Problems as the server writes them, one a line: where, and what is wrong there. */
export const problems = (lines) => lines.map((text) => {
  const found = /^([^\s:]+): (.*)$/s.exec(text);
  return found ? { path: found[1], message: found[2] } : { path: "", message: text };
});

/**
 * The form of an object schema: `element`, `get()`, `set(value)`, `show(problems)`. `secret` matches names of secrets.
 *
 * Where it is `asked` by a question, titles are labels, defaults stand in the fields, and what is empty is left out.
 */
export function form(schema, secret = /(?!)/, asked = false) {
  const members = object(resolved(schema, schema), { root: schema, depth: 0, secret, asked });
  const other = h("ul", { class: "wrong", role: "alert", hidden: true });
  const places = () => {
    const found = new Map();
    members.places("", found);
    return found;
  };
  const show = (problems) => {
    const found = places();
    for (const field of found.values()) field.wrong("");
    const homeless = [];
    for (const { path, message } of problems) {
      let at = path;
      while (at && !found.has(at)) at = at.replace(/(\.[^.[]*|\[[^[]*\]|^[^.[]+)$/, "");
      if (at) found.get(at).wrong(at === path ? message : `${path}: ${message}`);
      else homeless.push(path ? `${path}: ${message}` : message);
    }
    other.replaceChildren(...homeless.map((each) => h("li", {}, each)));
    other.hidden = !homeless.length;
    element.querySelector('[aria-invalid="true"]')?.focus();
  };
  const element = h("div", { class: "fields" }, other, members.element);
  /** The value, or null where a field has none: it says so itself. */
  const value = () => {
    show([]);
    const problems = [];
    const found = members.get("", problems);
    if (problems.length) show(problems);
    return problems.length ? null : found;
  };
  /** The value as far as there is one, without a word about the rest. */
  const peek = (secrets = true) => members.get("", [], secrets);
  /** Where there are secrets: names and numbers, from the outside in. */
  const secrets = () => missing(peek(), peek(false));
  /** Say of the field there, or of the nearest around it, that its secret was not put back. */
  const withhold = (path) => {
    const found = places();
    const names = [...path];
    const name = () => names.reduce((before, each) => (typeof each === "number" ? `${before}[${each}]` : before ? `${before}.${each}` : each), "");
    while (names.length && !found.has(name())) names.pop();
    found.get(name())?.withhold(names.length === path.length);
  };
  return { element, get: value, peek, secrets, set: members.set, show, withhold, empty: members.empty };
}

function missing(all, kept, path = []) {
  if (isObject(all) && isObject(kept)) return Object.keys(all).flatMap((name) => (Object.hasOwn(kept, name) ? missing(all[name], kept[name], [...path, name]) : [[...path, name]]));
  if (Array.isArray(all) && Array.isArray(kept)) return all.flatMap((each, at) => missing(each, kept[at], [...path, at]));
  return print(all) === print(kept) ? [] : [path];
}

/** One named field with its label, what is said about it, and what is wrong with it. */
function field(name, schema, { root, depth, secret, required, plain, asked }) {
  const found = resolved(schema, root);
  const hidden = found.format === "password" || found.writeOnly === true || secret.test(name);
  const at = depth > DEEPEST ? "any" : kind(found);
  const [id, hint, error] = [fresh("field"), fresh("hint"), fresh("error")];
  const wrong = h("p", { id: error, class: "error", hidden: true });
  const off = button("Leave out", () => control.clear(), { class: "quiet small", hidden: true });
  const context = {
    id, name, root, depth: depth + 1, secret, hidden, required, asked,
    described: `${hint} ${error}`,
    changed: (set) => {
      withheld(false);
      off.hidden = required || !set;
      element.classList.toggle("set", set);
    },
  };
  const box = h("div", { class: "control" });
  const lost = h("p", { class: "hint", hidden: true });
  let held = false; // it is not meant to run with nothing in place of a secret
  const withheld = (now, here = false) => {
    lost.hidden = !now;
    lost.textContent = now ? "A secret is not put back: enter it again." : "";
    held = now && here;
  };
  let control = null;
  const use = (make) => {
    control = make(found, context);
    box.replaceChildren(control.element);
  };
  const said = [found.description, bounds(found), "default" in found && !asked && `default ${print(found.default)}`].filter(Boolean).join(" · ");
  const about = h("p", { id: hint, class: "hint", hidden: !said }, said);
  const type = words(asked ? { ...found, title: undefined } : schema, root);
  const kindly = h("span", { class: "type" }, (type === "object" && at === "object" ? "" : type) + (found.deprecated ? " · deprecated" : ""));
  const grouped = ["object", "array"].includes(at);
  const shown = (asked && found.title) || name;
  const label = grouped ? h("legend", {}, shown) : h("label", { for: id }, shown);
  const flag = plain ? null : h("span", { class: "flag" }, required ? "required" : "optional");
  const element = h(grouped ? "fieldset" : "div", { class: "field" },
    grouped ? label : null, h("div", { class: "head" }, grouped ? null : label, kindly, flag, off), about, box, lost, wrong);
  use(asked && at === "array" && kind(resolved(found.items, root)) === "choice" ? several : CONTROLS[at] ?? any);
  const made = {
    element,
    get(path, problems, secrets = true) {
      if (hidden && !secrets) return LEFT_OUT;
      if (held && required) {
        problems.push({ path, message: "a value is required" });
        return LEFT_OUT;
      }
      const value = control.get(path, problems, secrets);
      const message = asked && value !== LEFT_OUT ? unfit(found, value) : "";
      if (message) problems.push({ path, message });
      return value;
    },
    set: (value) => {
      if (!fits(found, value, root, true) && control.kind !== "any") use(any); // what the field cannot hold is shown as JSON
      control.set(value);
    },
    clear: () => control.clear?.(),
    places: (path, places) => {
      places.set(path, { withhold: (here) => withheld(true, here || control.kind === "any"), wrong: (message) => {
        wrong.textContent = message;
        wrong.hidden = !message;
        const at = box.querySelector(`[id="${id}"]`);
        if (message) at?.setAttribute("aria-invalid", "true");
        else at?.removeAttribute("aria-invalid");
      } });
      control.places?.(path, places);
    },
  };
  if (asked && "default" in found && !hidden) made.set(found.default);
  return made;
}

/** A control that is one element: `read(text)` gives the value or throws what is wrong with it. */
function single(element, context, { read, write, empty = () => element.value === "", wanted = "a value is required" }) {
  let set = false;
  const touch = (now = true) => {
    set = now;
    context.changed(set);
  };
  element.id = context.id;
  element.setAttribute("aria-describedby", context.described);
  if (context.required) element.setAttribute("aria-required", "true");
  element.addEventListener("input", () => touch());
  element.addEventListener("change", () => touch());
  return {
    element,
    get(path, problems) {
      if (!context.required && (!set || (context.asked && empty()))) return LEFT_OUT;
      try {
        if (empty()) throw new Error(wanted);
        return read(element.value);
      } catch (error) {
        problems.push({ path, message: error.message });
        return LEFT_OUT;
      }
    },
    set(value) {
      write(value);
      touch();
    },
    clear() {
      write(undefined);
      touch(false);
    },
  };
}

function string(schema, context) {
  const write = (value) => (element.value = value ?? "");
  const secret = context.hidden;
  const type = secret ? "password" : schema.format === "date" ? "date" : context.asked ? { email: "email", uri: "url" }[schema.format] ?? null : null;
  const examples = { "date-time": "2026-01-31T09:30:00Z", time: "09:30:00Z", duration: "PT1H30M", uuid: "12345678-1234-5678-1234-567812345678", ipv4: "127.0.0.1", ipv6: "::1" };
  const placeholder = typeof schema.default === "string" ? schema.default : examples[schema.format];
  const element = type || schema.format || schema.maxLength <= 100
    ? h("input", { type: type ?? "text", placeholder, autocomplete: "off", spellcheck: "false" })
    : h("textarea", { rows: 1, placeholder, spellcheck: "false" });
  // Without a format an empty text is a value like any other, but not as an answer.
  const empty = () => context.asked ? element.value === "" : Boolean(schema.format) && schema.format !== "regex" && !secret && element.value === "";
  const made = single(element, context, { read: (text) => text, write, empty });
  if (schema.contentEncoding !== "base64" && schema.format !== "byte") return made;
  const file = h("input", { type: "file", "aria-label": "Take a file", onchange: async () => {
    if (!file.files.length) return;
    const bytes = new Uint8Array(await file.files[0].arrayBuffer());
    let binary = "";
    for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    made.set(btoa(binary));
  } });
  return { ...made, element: h("div", { class: "beside" }, element, file) };
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

function number(schema, context) {
  const whole = schema.type === "integer";
  const element = h("input", { type: "text", inputmode: whole ? "numeric" : "decimal", autocomplete: "off", placeholder: "default" in schema ? print(schema.default) : null });
  return single(element, context, {
    read: (text) => {
      if (!NUMBER.test(text.trim())) throw new Error(whole ? "an integer is required" : "a number is required");
      return new Num(text.trim());
    },
    write: (value) => (element.value = value === undefined ? "" : print(value)),
    wanted: whole ? "an integer is required" : "a number is required",
  });
}

function boolean(schema, context) {
  const element = h("input", { type: "checkbox", checked: schema.default === true });
  return single(element, context, {
    read: () => element.checked,
    write: (value) => (element.checked = value ?? schema.default === true),
    empty: () => false,
  });
}

function choice(schema, context) {
  const named = choices(schema);
  const values = named.map((each) => each.value);
  const only = values.length === 1 && context.required;
  const nothing = h("option", { value: "" }, context.required ? "Choose" : "left out");
  const element = h("select", {}, only ? null : nothing, named.map((each, at) => h("option", { value: String(at) }, each.label)));
  const write = (value) => {
    const found = values.findIndex((each) => value !== undefined && print(each) === print(value));
    element.value = found < 0 && !only ? "" : String(Math.max(found, 0));
  };
  const made = single(element, context, { read: (at) => values[Number(at)], write, wanted: "choose one" });
  const { get } = made;
  // Back at "left out" it is left out.
  return { ...made, get: (path, problems) => (element.value === "" && !context.required ? LEFT_OUT : get(path, problems)) };
}

/** A list of choices, each at most once: a box for each. */
function several(schema, context) {
  const named = choices(resolved(schema.items, context.root));
  let set = context.required;
  const mark = (now) => {
    set = now || context.required;
    context.changed(set);
  };
  const boxes = named.map(() => h("input", { type: "checkbox", "aria-describedby": context.described, onchange: () => mark(true) }));
  const check = (values) => boxes.forEach((box, at) => (box.checked = values.some((each) => print(each) === print(named[at].value))));
  return {
    element: h("div", { class: "choices" }, boxes.map((box, at) => h("label", {}, box, named[at].label))),
    get: () => (set ? named.filter((each, at) => boxes[at].checked).map((each) => each.value) : LEFT_OUT),
    set(values) {
      check(values);
      mark(true);
    },
    clear() {
      check([]);
      mark(false);
    },
  };
}

function nothing(schema, context) {
  const element = h("output", { class: "nothing" }, "null");
  context.changed(false);
  element.id = context.id;
  return { element, get: () => (context.required ? null : LEFT_OUT), set() {}, clear() {} };
}

function any(schema, context) {
  const element = h("textarea", { rows: 2, class: "mono", spellcheck: "false", placeholder: "JSON" });
  const made = single(element, context, {
    read: (text) => {
      try {
        return parse(text);
      } catch (error) {
        throw new Error(`this is no JSON: ${error.message}`);
      }
    },
    write: (value) => (element.value = value === undefined ? "" : print(value, "  ")),
    wanted: "JSON is required",
  });
  return { ...made, kind: "any" };
}

function union(schema, context) {
  const several = branches(schema);
  const select = h("select", { "aria-label": "Kind", onchange: () => choose(select.value, true) },
    several.map((each, at) => h("option", { value: String(at) }, words(each, context.root))));
  const place = h("div", { class: "branch" });
  // The first one that is no object: an object may hold this union again.
  const simple = String(Math.max(several.findIndex((each) => !["object", "union", "null"].includes(kind(resolved(each, context.root)))), 0));
  let branch = null;
  const choose = (at, said) => {
    select.value = at;
    const one = resolved(several[Number(at)], context.root);
    const what = context.depth > DEEPEST ? any : CONTROLS[kind(one)] ?? any;
    // A user who chooses a kind means to send a value of it.
    const inner = said ? { required: true, changed() {} } : {};
    branch = what(one, { ...context, depth: context.depth + 1, ...inner });
    place.replaceChildren(branch.element);
    if (said) context.changed(true);
  };
  choose(simple, false);
  return {
    element: h("div", { class: "variants" }, select, place),
    get: (path, problems, secrets) => branch.get(path, problems, secrets),
    set(value) {
      const exact = several.findIndex((each) => fits(each, value, context.root));
      choose(String(exact < 0 ? Math.max(several.findIndex((each) => fits(each, value, context.root, true)), 0) : exact), true);
      branch.set(value);
    },
    clear() {
      context.changed(false);
      choose(simple, false);
    },
    places: (path, places) => branch.places?.(path, places),
  };
}

function array(schema, context) {
  const list = h("ol", { class: "items" });
  const fixed = schema.prefixItems ?? [];
  const rest = schema.items === false || fixed.length >= (schema.maxItems ?? Infinity) ? null : schema.items ?? {};
  const schemaAt = (at) => fixed[at] ?? rest ?? {}; // an item too many is shown, and refused
  let [items, set] = [[], context.required];
  const mark = (now) => {
    set = now;
    context.changed(now);
  };
  const number = () => items.forEach((item, at) => item.label(at + 1));
  const push = () => {
    const at = items.length;
    const one = field(String(at + 1), schemaAt(at), { ...context, required: true, plain: true });
    const off = button("Remove", () => {
      items.splice(items.indexOf(item), 1);
      item.row.remove();
      number();
      add.focus();
    }, { class: "quiet small" });
    const item = {
      field: one,
      row: h("li", {}, one.element, at < fixed.length ? null : off),
      label: (to) => {
        one.element.querySelector("legend, label").textContent = String(to);
        off.setAttribute("aria-label", `Remove ${to}`);
      },
    };
    items.push(item);
    list.append(item.row);
    item.label(items.length);
    return one;
  };
  const fill = () => {
    const least = Math.min(Math.max(fixed.length, schema.minItems ?? 0), 50);
    while (items.length < least) push();
  };
  const empty = () => {
    items = [];
    list.replaceChildren();
  };
  const add = button("Add item", () => {
    fill();
    if (rest !== null) push();
    mark(true);
    list.lastElementChild?.querySelector("input, textarea, select, button")?.focus();
  }, { class: "quiet", "aria-describedby": context.described });
  if (context.required) fill();
  return {
    element: h("div", {}, list, rest === null && context.required ? null : add),
    get(path, problems, secrets) {
      if (!set) return LEFT_OUT;
      // An item that has no value yet is null in what is put aside: the others keep their places.
      return items.map((item, at) => item.field.get(`${path}[${at}]`, problems, secrets)).map((each) => (each === LEFT_OUT ? null : each));
    },
    set(value) {
      empty();
      value.forEach((each, at) => {
        const one = push();
        if (each !== null || fits(schemaAt(at), null, context.root)) one.set(each);
      });
      mark(true);
    },
    clear() {
      empty();
      if (context.required) fill();
      mark(context.required);
    },
    places: (path, places) => items.forEach((item, at) => item.field.places(`${path}[${at}]`, places)),
  };
}

/** An object that may be left out has its fields only when the user wants them. */
function member(schema, context) {
  const inner = h("div", {});
  let made = null;
  const open = () => {
    made ??= object(schema, context);
    inner.replaceChildren(made.element);
    context.changed(true);
    return made;
  };
  const start = button("Fill in", () => open().element.querySelector("input, textarea, select, button")?.focus(), { class: "quiet" });
  const close = () => {
    made = null;
    inner.replaceChildren(start);
    context.changed(false);
  };
  if (context.required) open();
  else close();
  return {
    element: inner,
    get: (path, problems, secrets) => (made ? made.get(path, problems, secrets) : LEFT_OUT),
    set: (value) => open().set(value),
    clear: () => (context.required ? open().clear() : close()),
    places: (path, places) => made?.places(path, places),
  };
}

function object(schema, { root, depth, secret, asked }) {
  const required = new Set(schema.required ?? []);
  const named = Object.entries(schema.properties ?? {}).map(([name, each]) => [name, field(name, each, { root, depth, secret, asked, required: required.has(name) })]);
  const others = schema.additionalProperties === false || (depth === 0 && !schema.additionalProperties) ? null : schema.additionalProperties ?? {};
  const list = h("ul", { class: "items" });
  let entries = [];
  const push = (name = "") => {
    const id = fresh("key");
    const key = h("input", { id, type: "text", value: name, autocomplete: "off", spellcheck: "false" });
    const value = field("Value", others, { root, depth: depth + 1, secret, required: true, plain: true });
    const entry = { key, value };
    const off = button("Remove", () => {
      entries = entries.filter((each) => each !== entry);
      row.remove();
      add.focus();
    }, { class: "quiet small" });
    const row = h("li", { class: "entry" }, h("div", { class: "field" }, h("div", { class: "head" }, h("label", { for: id }, "Key")), key), value.element, off);
    entries.push(entry);
    list.append(row);
    return entry;
  };
  const add = button("Add entry", () => push().key.focus(), { class: "quiet" });
  const empty = () => {
    entries = [];
    list.replaceChildren();
    for (const [, each] of named) each.clear();
  };
  const join = (path, name) => (path ? `${path}.${name}` : name);
  const parts = () => [...named, ...entries.map(({ key, value }) => [key.value, value])];
  return {
    element: h("div", { class: "members" }, named.map(([, each]) => each.element), others === null ? null : [list, add]),
    empty: !named.length && others === null,
    get(path, problems, secrets) {
      const found = parts().map(([name, each]) => [name, each.get(join(path, name), problems, secrets)]);
      return Object.fromEntries(found.filter(([, value]) => value !== LEFT_OUT));
    },
    set(value) {
      empty();
      if (!isObject(value)) return;
      for (const [name, each] of named) if (Object.hasOwn(value, name)) each.set(value[name]);
      const known = new Set(named.map(([name]) => name));
      if (others !== null) for (const [name, each] of Object.entries(value)) if (!known.has(name)) push(name).value.set(each);
    },
    clear: empty,
    places: (path, places) => parts().forEach(([name, each]) => each.places(join(path, name), places)),
  };
}

const CONTROLS = { string, number, boolean, choice, null: nothing, any, union, array, object: member };
