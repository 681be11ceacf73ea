/** Jinja's filters, where the package lacks them or departs from Python. */

import { Arguments } from "./arguments.ts";
import { reserve } from "./budget.ts";
import { itemOf } from "./member.ts";
import * as jinja from "./package.ts";
import { json, print } from "./print.ts";
import { capitalize, stringMethods } from "./string-methods.ts";
import { passes } from "./tests.ts";
import { Text } from "./text.ts";
import { itemsOf } from "./values.ts";

type Filter = (value: jinja.Value, args: Arguments) => jinja.Value;

const filters: ReadonlyMap<string, Filter> = new Map(
  Object.entries<Filter>({
    count: length,
    d: byDefault,
    default: byDefault,
    first: (value) => itemsOf(value)[0] ?? new jinja.UndefinedValue(),
    indent,
    join,
    last: (value) => itemsOf(value).at(-1) ?? new jinja.UndefinedValue(),
    length,
    list: (value) => new jinja.ArrayValue([...itemsOf(value)]),
    map,
    reject: (value, args) => selected(value, args.positional, false),
    rejectattr: (value, args) => selected(value, args.positional.slice(1), false, args.text(0)),
    safe: print,
    select: (value, args) => selected(value, args.positional, true),
    selectattr: (value, args) => selected(value, args.positional.slice(1), true, args.text(0)),
    string: print,
    title(value) {
      const text = print(value);
      // Words begin at other places than for the method of strings.
      return text.changed(text.value.replace(/[^-\s({[<]+/g, capitalize));
    },
    tojson,
    trim: method("strip"),
    ...Object.fromEntries(
      ["capitalize", "lower", "replace", "upper"].map((name) => [name, method(name)]),
    ),
  }),
);

/** A filter, or a test such as "is not none"; undefined for what is left to the package. */
export function filterOf(name: string): Filter | undefined {
  const [, negation, test] = /^is (not )?(.*)/.exec(name) ?? [];
  if (test === undefined) return filters.get(name);
  return (value, args) =>
    new jinja.BooleanValue(passes(test, value, args.get(0)) === (negation === undefined));
}

/** A filter that is a method of the printed value. */
function method(name: string): Filter {
  return (value, args) => stringMethods.get(name)?.(print(value), args) ?? value;
}

function byDefault(value: jinja.Value, args: Arguments): jinja.Value {
  const isMissing =
    value instanceof jinja.UndefinedValue || (args.flag(1, "boolean") && !value.__bool__().value);
  return isMissing ? (args.get(0, "default_value") ?? Text.template("")) : value;
}

function blanks(width: number): Text {
  reserve(width);
  return Text.template(" ".repeat(Math.max(0, width)));
}

function indent(value: jinja.Value, args: Arguments): jinja.Value {
  const margin = args.optionalText(0, "width") ?? blanks(args.integer(0, "width", 4));
  const [isFirst, isBlank] = [args.flag(1, "first"), args.flag(2, "blank")];
  const lines = print(value).split("\n");
  const indented = lines.map((line, i) => {
    const isKept = i === 0 ? !isFirst : !isBlank && line.value === "";
    return isKept ? line : Text.join([margin, line]);
  });
  return Text.join(indented, Text.template("\n"));
}

function join(value: jinja.Value, args: Arguments): jinja.Value {
  const attribute = args.optionalText(1, "attribute");
  const items = itemsOf(value).map((item) => print(attribute ? itemOf(item, attribute) : item));
  return Text.join(items, args.optionalText(0, "d"));
}

function length(value: jinja.Value): jinja.Value {
  if (value instanceof jinja.StringValue) return new jinja.IntegerValue(Text.from(value).length);
  return new jinja.IntegerValue(
    value instanceof jinja.ObjectValue ? value.value.size : itemsOf(value).length,
  );
}

function map(value: jinja.Value, args: Arguments): jinja.Value {
  const [name, ...rest] = args.positional;
  const attribute = args.keywords.get("attribute");
  const filter = attribute === undefined ? filterOf(Text.from(name).value) : undefined;
  const items = itemsOf(value).map((item) => {
    if (filter !== undefined) return filter(item, new Arguments(rest, args.keywords));
    const part = itemOf(item, Text.from(attribute));
    const isMissing = part instanceof jinja.UndefinedValue;
    return isMissing ? (args.keywords.get("default") ?? part) : part;
  });
  return new jinja.ArrayValue(items);
}

/** The items that pass a test, or those that do not; by an attribute or by themselves. */
function selected(
  value: jinja.Value,
  [test, other]: readonly jinja.Value[],
  wanted: boolean,
  attribute?: Text,
): jinja.Value {
  const items = itemsOf(value).filter((item) => {
    const subject = attribute === undefined ? item : itemOf(item, attribute);
    const isTrue = subject.__bool__().value;
    return wanted === (test === undefined ? isTrue : passes(Text.from(test).value, subject, other));
  });
  return new jinja.ArrayValue(items);
}

function tojson(value: jinja.Value, args: Arguments): jinja.Value {
  const isIndented = args.get(1, "indent") instanceof jinja.IntegerValue;
  const indent = isIndented ? blanks(args.integer(1, "indent", 0)).value : undefined;
  const separators = args.get(2, "separators");
  const [comma, colon] = separators === undefined ? [] : itemsOf(separators).map(print);
  const layout = {
    comma: comma?.value ?? (isIndented ? "," : ", "),
    colon: colon?.value ?? ": ",
    indent,
    sortKeys: args.flag(3, "sort_keys"),
  };
  return json(value, layout, args.flag(0, "ensure_ascii"));
}
