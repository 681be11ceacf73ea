/** The methods of Python's strings, each character of the result with its origin. */

import { runtimeError } from "../template-error.ts";
import type { Arguments } from "./arguments.ts";
import { spend } from "./budget.ts";
import * as jinja from "./package.ts";
import { Text } from "./text.ts";
import { itemsOf, typeName } from "./values.ts";

type Method = (self: Text, args: Arguments) => jinja.Value;

export const stringMethods: ReadonlyMap<string, Method> = new Map(
  Object.entries<Method>({
    capitalize: (self) => self.changed(capitalize(self.value)),
    endswith: (self, args) => hasAffix(args, (end) => self.value.endsWith(end)),
    join,
    lower: (self) => self.changed(self.value.toLowerCase()),
    lstrip: (self, args) => self.strip(args.optionalText(0)?.value, "left"),
    replace,
    rsplit: (self, args) => split(self, args, true),
    rstrip: (self, args) => self.strip(args.optionalText(0)?.value, "right"),
    split: (self, args) => split(self, args, false),
    startswith: (self, args) =>
      hasAffix(args, (start) => self.value.startsWith(start, args.integer(1, "start", 0))),
    strip: (self, args) => self.strip(args.optionalText(0)?.value, "both"),
    title: (self) => self.changed(self.value.replace(/\p{L}+/gu, capitalize)),
    upper: (self) => self.changed(self.value.toUpperCase()),
  }),
);

export function capitalize(word: string): string {
  spend(1);
  const [first = ""] = word;
  return first.toUpperCase() + word.slice(first.length).toLowerCase();
}

/** Whether the given string passes, or one of a tuple of them. */
function hasAffix(args: Arguments, passes: (affix: string) => boolean): jinja.Value {
  const given = args.get(0);
  const affixes = given instanceof jinja.ArrayValue ? given.value : [given];
  return new jinja.BooleanValue(affixes.some((affix) => passes(Text.from(affix).value)));
}

function join(self: Text, args: Arguments): jinja.Value {
  const items = itemsOf(args.get(0) ?? self).map((item, i) => {
    if (item instanceof jinja.StringValue) return Text.from(item);
    throw runtimeError(`cannot join: item ${i} is ${typeName(item)}`);
  });
  return Text.join(items, self);
}

function replace(self: Text, args: Arguments): jinja.Value {
  const parts = self.split(args.text(0, "old").value, limitOf(args, 2, "count"));
  return Text.join(parts, args.text(1, "new"));
}

function split(self: Text, args: Arguments, isFromRight: boolean): jinja.Value {
  const separator = args.optionalText(0, "sep")?.value;
  const limit = limitOf(args, 1, "maxsplit");
  if (separator !== undefined) {
    return new jinja.ArrayValue(self.split(separator, limit, isFromRight));
  }
  const words = Array.from(self.value.matchAll(/\S+/g), ({ 0: word, index }, i) =>
    self.slice(index, i < limit ? index + word.length : undefined),
  );
  return new jinja.ArrayValue(words.slice(0, limit + 1));
}

/** How often at most; below zero is always. */
function limitOf(args: Arguments, index: number, name: string): number {
  const limit = args.integer(index, name, -1);
  return limit < 0 ? Number.POSITIVE_INFINITY : limit;
}
