/** Values as text: as Python prints them, and as its `json.dumps` writes them. */

import { runtimeError } from "../template-error.ts";
import { spend } from "./budget.ts";
import * as jinja from "./package.ts";
import { Text } from "./text.ts";
import { typeName } from "./values.ts";

export interface Layout {
  readonly comma: string;
  readonly colon: string;
  /** Puts each item on a line of its own. */
  readonly indent?: string | undefined;
  readonly sortKeys?: boolean;
}

interface Notation extends Layout {
  /** None, true and false. */
  readonly words: readonly [string, string, string];
  quote(text: Text): Text;
}

const python: Notation = {
  words: ["None", "True", "False"],
  comma: ", ",
  colon: ": ",
  quote(text) {
    const mark = text.value.includes("'") && !text.value.includes('"') ? '"' : "'";
    const special = mark === "'" ? /[\\\n\r\t']/g : /[\\\n\r\t]/g;
    const escape = (character: string) =>
      character === "'" ? "\\'" : JSON.stringify(character).slice(1, -1);
    return enclosed(mark, text.escaped(special, escape), mark);
  },
};

/** What `{{ value }}` prints. */
export function print(value: jinja.Value): Text {
  if (value instanceof jinja.StringValue) return Text.from(value);
  return value instanceof jinja.UndefinedValue ? Text.template("") : write(value, python);
}

/** JSON in the given layout. */
export function json(value: jinja.Value, layout: Layout, isAscii: boolean): Text {
  const special = isAscii ? /["\\]|[^ -~]/g : /["\\\x00-\x1f]/g;
  const quote = (text: Text) => enclosed('"', text.escaped(special, escapeJson), '"');
  return write(value, { ...layout, words: ["null", "true", "false"], quote });
}

function escapeJson(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x7f) return JSON.stringify(character).slice(1, -1);
  return `\\u${code.toString(16).padStart(4, "0")}`;
}

function write(value: jinja.Value, notation: Notation, margin = "\n"): Text {
  spend(1);
  if (value instanceof jinja.StringValue) return notation.quote(Text.from(value));
  const inner = notation.indent === undefined ? "" : margin + notation.indent;
  const list = (open: string, items: readonly Text[], close: string): Text => {
    if (items.length === 0) return Text.template(open + close);
    const body = Text.join(items, Text.template(notation.comma + inner));
    return enclosed(open + inner, body, (inner === "" ? "" : margin) + close);
  };
  if (value instanceof jinja.ArrayValue) {
    const items = value.value.map((item) => write(item, notation, inner));
    if (notation !== python || !(value instanceof jinja.TupleValue)) return list("[", items, "]");
    return list("(", items, items.length === 1 ? ",)" : ")");
  }
  if (value instanceof jinja.ObjectValue) {
    const entries = [...value.value];
    if (notation.sortKeys) entries.sort(([a], [b]) => (a < b ? -1 : 1));
    const colon = Text.template(notation.colon);
    const items = entries.map(([key, item]) =>
      Text.join([notation.quote(Text.user(key)), write(item, notation, inner)], colon),
    );
    return list("{", items, "}");
  }
  return Text.template(writePlain(value, notation));
}

function writePlain(value: jinja.Value, notation: Notation): string {
  const [none, yes, no] = notation.words;
  if (value instanceof jinja.NullValue) return none;
  if (value instanceof jinja.BooleanValue) return value.value ? yes : no;
  if (value instanceof jinja.IntegerValue) return String(value.value);
  if (value instanceof jinja.FloatValue) return writeFloat(value.value);
  if (notation === python) return typeName(value);
  throw runtimeError(`Object of type ${typeName(value)} is not JSON serializable`);
}

/** As Python does: with a point or an exponent, which begins at other sizes than here. */
function writeFloat(value: number): string {
  const [digits = "", exponent = ""] = value.toExponential().split("e");
  const power = Number(exponent);
  if (value !== 0 && (power < -4 || power >= 16)) {
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

function enclosed(open: string, text: Text, close: string): Text {
  return Text.join([Text.template(open), text, Text.template(close)]);
}
