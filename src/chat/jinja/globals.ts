/** The names that every template finds: Jinja's own and the two functions of transformers. */

import { limitError, runtimeError, TemplateError } from "../template-error.ts";
import { Arguments } from "./arguments.ts";
import { reserve } from "./budget.ts";
import * as jinja from "./package.ts";
import { print } from "./print.ts";
import { strftime } from "./strftime.ts";

/** The sandbox of transformers has the same limit. */
const MAX_RANGE_SIZE = 100_000;

/** A scope that holds them; `now` tells the time to `strftime_now`. */
export function globalScope(now: () => Date): jinja.Environment {
  const scope = new jinja.Environment();
  const constants = { true: true, True: true, false: false, False: false, none: null, None: null };
  for (const [name, value] of Object.entries(constants)) scope.set(name, value);
  const functions: Readonly<Record<string, (args: Arguments) => jinja.Value>> = {
    dict(args) {
      const given = args.get(0);
      const entries = given instanceof jinja.ObjectValue ? given.value : [];
      return new jinja.ObjectValue(new Map([...entries, ...args.keywords]));
    },
    raise_exception(args) {
      const message = print(args.get(0, "message") ?? new jinja.UndefinedValue());
      throw new TemplateError("raised", message.value);
    },
    range,
    strftime_now(args) {
      const format = args.text(0, "format");
      reserve(format.value.length * 16);
      return format.changed(strftime(now(), format.value));
    },
  };
  for (const [name, body] of Object.entries(functions)) {
    scope.setVariable(name, new jinja.FunctionValue((values) => body(new Arguments(values))));
  }
  return scope;
}

function range(args: Arguments): jinja.Value {
  const first = args.integer(0, "start", 0);
  const [start, stop] =
    args.positional.length > 1 ? [first, args.integer(1, "stop", 0)] : [0, first];
  const step = args.integer(2, "step", 1);
  if (step === 0) throw runtimeError("range() arg 3 must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > MAX_RANGE_SIZE) {
    throw limitError(`Range too big. The sandbox blocks ranges larger than ${MAX_RANGE_SIZE}.`);
  }
  reserve(0, length);
  return new jinja.ArrayValue(
    Array.from({ length }, (_, i) => new jinja.IntegerValue(start + i * step)),
  );
}
