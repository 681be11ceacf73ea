/** What `for` gives to its body: the loop variables and the object `loop`. */

import { runtimeError } from "../template-error.ts";
import * as jinja from "./package.ts";
import { itemsOf } from "./values.ts";

/** A scope in which the item has its name, or each part of it has its own. */
export function loopScope(
  { loopvar }: jinja.ast.For,
  item: jinja.Value,
  outer: jinja.Environment,
): jinja.Environment {
  const scope = new jinja.Environment(outer);
  const isTuple = loopvar.type === "TupleLiteral";
  const names = isTuple ? (loopvar as jinja.ast.TupleLiteral).value : [loopvar];
  const parts = isTuple ? itemsOf(item) : [item];
  if (names.length !== parts.length) {
    throw runtimeError(`cannot unpack ${parts.length} values to ${names.length} names`);
  }
  for (const [i, part] of parts.entries()) {
    scope.setVariable((names[i] as jinja.ast.Identifier).value, part);
  }
  return scope;
}

/** Sets the object `loop` of one turn. */
export function setLoop(items: readonly jinja.Value[], at: number, scope: jinja.Environment): void {
  const { length } = items;
  const loop = scope.set("loop", {
    index: at + 1,
    index0: at,
    revindex: length - at,
    revindex0: length - at - 1,
    first: at === 0,
    last: at === length - 1,
    length,
  });
  if (!(loop instanceof jinja.ObjectValue)) return;
  const nothing = new jinja.UndefinedValue();
  loop.value.set("previtem", items[at - 1] ?? nothing);
  loop.value.set("nextitem", items[at + 1] ?? nothing);
}
