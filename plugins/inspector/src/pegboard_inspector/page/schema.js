// JSON Schema as a form needs it: what a value may be, in words, and which branch a value belongs to.

import { isInteger, isNumber, isObject, print } from "./json.js";

const SEVERAL = ["anyOf", "oneOf"];

/** The schema with its references and `allOf` followed, as far as one level needs it. */
export function resolved(schema, root) {
  let found = schema === true || schema === undefined ? {} : schema === false ? { not: {} } : schema;
  for (let steps = 0; found.$ref !== undefined && steps < 20; steps += 1) {
    const { $ref, ...beside } = found;
    const target = String($ref).split("/").slice(1).reduce((at, part) => at?.[decodeURIComponent(part.replaceAll("~1", "/").replaceAll("~0", "~"))], root);
    found = { ...(isObject(target) ? target : {}), ...beside };
  }
  for (const part of found.allOf ?? []) {
    const { allOf, ...rest } = found;
    const one = resolved(part, root);
    found = { ...one, ...rest, properties: { ...one.properties, ...rest.properties }, required: [...(one.required ?? []), ...(rest.required ?? [])] };
    if (!Object.keys(found.properties).length) delete found.properties;
  }
  return found;
}

/** The values that a schema names, each with its label; null if it names none. */
export function choices(schema) {
  const label = (value) => (typeof value === "string" ? value : print(value));
  if ("const" in schema) return [{ value: schema.const, label: label(schema.const) }];
  if (schema.enum) return schema.enum.map((value, at) => ({ value, label: label(schema.enumNames?.[at] ?? value) }));
  const several = schema.oneOf ?? schema.anyOf;
  const named = Array.isArray(several) && several.length && several.every((each) => isObject(each) && "const" in each);
  return named ? several.map((each) => ({ value: each.const, label: each.title ?? label(each.const) })) : null;
}

/** Which field a schema needs. */
export function kind(schema) {
  if (choices(schema)) return "choice";
  if (SEVERAL.some((each) => schema[each]) || Array.isArray(schema.type)) return "union";
  if (schema.type) return schema.type === "integer" ? "number" : schema.type;
  if (schema.properties) return "object";
  return schema.items || schema.prefixItems ? "array" : "any";
}

/** The branches of a union. */
export function branches(schema) {
  const { anyOf, oneOf, description, title, default: unused, ...beside } = schema;
  const several = anyOf ?? oneOf;
  if (several) return several.map((each) => (isObject(each) && isObject(beside.properties) ? { ...beside, ...each } : each));
  return schema.type.map((type) => ({ ...schema, type, description: undefined }));
}

/** A schema in a word or two: `integer`, `list of date`, `Circle`. */
export function words(schema, root, depth = 0) {
  if (isObject(schema) && schema.$ref && !schema.title) return String(schema.$ref).split("/").at(-1);
  const found = resolved(schema, root);
  if (found.title) return found.title;
  const what = kind(found);
  if (what === "choice") return choices(found).length > 3 ? "choice" : choices(found).map((each) => print(each.value)).join(" or ");
  if (what === "union") return depth > 2 ? "several" : [...new Set(branches(found).map((each) => words(each, root, depth + 1)))].join(" or ");
  if (what === "array") return found.items && found.items !== true && depth < 3 ? `list of ${words(found.items, root, depth + 1)}` : "list";
  if (what === "string") return found.format ?? (found.contentEncoding === "base64" ? "base64" : "text");
  if (what === "number") return found.type === "integer" ? "integer" : "number";
  if (what === "object") {
    const tag = Object.entries(found.properties ?? {}).find(([, each]) => isObject(each) && "const" in each);
    return tag ? `${tag[0]}: ${print(tag[1].const)}` : "object";
  }
  return what;
}

/** The bounds that a schema sets, in words. */
export function bounds(schema) {
  const said = [
    ["minimum", "at least"], ["exclusiveMinimum", "more than"], ["maximum", "at most"], ["exclusiveMaximum", "less than"],
    ["multipleOf", "a multiple of"], ["minLength", "characters, at least"], ["maxLength", "characters, at most"],
    ["minItems", "items, at least"], ["maxItems", "items, at most"], ["pattern", "matches"],
  ];
  const found = said.filter(([name]) => name in schema).map(([name, text]) => `${text} ${typeof schema[name] === "string" ? schema[name] : print(schema[name])}`);
  if (schema.uniqueItems) found.push("no item twice");
  return found.join(", ");
}

const FORMATS = {
  email: [/^[^@\s]+@[^@\s]+$/, "an e-mail address"],
  uri: [/^[A-Za-z][A-Za-z0-9+.-]*:\S+$/, "a URI such as https://example.com"],
  date: [/^\d{4}-\d\d-\d\d$/, "a date such as 2026-01-31"],
  "date-time": [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i, "a date and time such as 2026-01-31T09:30:00Z"],
};

/** What is wrong with a value of the right kind, or nothing; patterns, which may be slow, are left to the server. */
export function unfit(schema, value) {
  const [format, wanted] = (typeof value === "string" && FORMATS[schema.format]) || [];
  if (format && !format.test(value)) return `${wanted} is required`;
  if (schema.type === "integer" && !isInteger(value)) return "an integer is required";
  const [size, least, most] = isNumber(value) ? [Number(value), schema.minimum, schema.maximum]
    : typeof value === "string" ? [[...value].length, schema.minLength, schema.maxLength]
    : [value?.length, schema.minItems, schema.maxItems];
  const outside = size < least || size > most || (isNumber(value) && (size <= schema.exclusiveMinimum || size >= schema.exclusiveMaximum));
  return outside ? `out of bounds: ${bounds(schema)}` : "";
}

/** Whether a value may belong to a schema, as far as is needed to pick the branch of a union; a `draft` may lack members and items. */
export function fits(schema, value, root, draft = false, depth = 0) {
  const found = resolved(schema, root);
  if (found.not && !Object.keys(found.not).length) return false;
  if (depth > 6) return true;
  switch (kind(found)) {
    case "choice": return choices(found).some((each) => print(each.value) === print(value));
    case "union": return branches(found).some((each) => fits(each, value, root, draft, depth + 1));
    case "string": return typeof value === "string";
    case "number": return found.type === "integer" ? isInteger(value) : isNumber(value);
    case "boolean": return typeof value === "boolean";
    case "null": return value === null;
    case "array":
      if (!Array.isArray(value)) return false;
      return (draft || (value.length <= (found.maxItems ?? Infinity) && value.length >= (found.minItems ?? 0)))
        && value.every((each, at) => (draft && each === null) || fits(found.prefixItems?.[at] ?? found.items, each, root, draft, depth + 1));
    case "object": {
      if (!isObject(value)) return false;
      const members = found.properties ?? {};
      if (!draft && (found.required ?? []).some((name) => !(name in value))) return false;
      return Object.entries(value).every(([name, each]) =>
        Object.hasOwn(members, name) ? fits(members[name], each, root, draft, depth + 1) : found.additionalProperties !== false && fits(found.additionalProperties, each, root, draft, depth + 1));
    }
    default: return true;
  }
}
