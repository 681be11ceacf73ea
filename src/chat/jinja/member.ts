/** What `object.name` and `object[key]` are. */

import { Arguments } from "./arguments.ts";
import { spend } from "./budget.ts";
import * as jinja from "./package.ts";
import { stringMethods } from "./string-methods.ts";
import { Text } from "./text.ts";
import { itemsOf } from "./values.ts";

/** `object.name`: a method before an entry. */
export function attributeOf(object: jinja.Value, name: string): jinja.Value {
  return methodOf(object, name) ?? entryOf(object, name) ?? new jinja.UndefinedValue();
}

/** `object[key]`: an item, or an entry before a method. */
export function itemOf(object: jinja.Value, key: jinja.Value): jinja.Value {
  const isList = object instanceof jinja.ArrayValue || object instanceof jinja.StringValue;
  const item =
    key instanceof jinja.StringValue
      ? (entryOf(object, key.value) ?? methodOf(object, key.value))
      : isList && key instanceof jinja.IntegerValue && itemsOf(object).at(key.value);
  return item || new jinja.UndefinedValue();
}

function entryOf(object: jinja.Value, name: string): jinja.Value | undefined {
  const hasEntries = object instanceof jinja.ObjectValue || object instanceof jinja.NamespaceValue;
  return hasEntries ? object.value.get(name) : undefined;
}

function methodOf(object: jinja.Value, name: string): jinja.Value | undefined {
  if (object instanceof jinja.ObjectValue) return object.builtins.get(name);
  const method = object instanceof jinja.StringValue ? stringMethods.get(name) : undefined;
  if (method === undefined) return undefined;
  const self = Text.from(object);
  return new jinja.FunctionValue((values) => {
    spend(self.value.length / 64);
    return method(self, new Arguments(values));
  });
}
