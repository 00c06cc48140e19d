// JSON without loss: a number that JavaScript cannot hold stays as it was written.

/** A number as it is written. */
export class Num {
  constructor(text) {
    this.text = text;
  }

  valueOf() {
    return Number(this.text);
  }
}

/** A value from JSON text. Throws SyntaxError. */
export function parse(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? new Num(context.source)
      : value,
  );
}

/** JSON text of a value; with `indent` over several lines. */
export function print(value, indent = "", inside = "") {
  if (value instanceof Num) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const array = Array.isArray(value);
  const parts = array
    ? value.map((each) => print(each, indent, inside + indent))
    : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${indent && " "}${print(each, indent, inside + indent)}`);
  const [open, close] = array ? "[]" : "{}";
  if (!parts.length) return open + close;
  if (!indent) return open + parts.join(indent ? ", " : ",") + close;
  const line = `\n${inside}${indent}`;
  return `${open}${line}${parts.join(`,${line}`)}\n${inside}${close}`;
}

export const isNumber = (value) => typeof value === "number" || value instanceof Num;
export const isObject = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Num);
export const isInteger = (value) =>
  typeof value === "number" ? Number.isInteger(value) : value instanceof Num && Number.isInteger(Number(value.text));
