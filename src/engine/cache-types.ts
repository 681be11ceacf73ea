/** What the cache of an engine keeps keys and values as, by the name that people give it. */
import { UserError } from "../errors.ts";
import { kvTypeNames, parseKvTypes, type KvTypes } from "../kernels/kv-type.ts";

export type { KvTypeName } from "../kernels/kv-type.ts";

/** "tq4", or "q8_0,tq4" for keys and values. Throws a "usage" error for other names. */
export function cacheTypes(name: string): KvTypes {
  const types = parseKvTypes(name);
  if (types !== undefined) return types;
  const remedy = `choose of ${kvTypeNames.join(", ")}, or two: q8_0,tq4`;
  throw new UserError("usage", `a cache of ${name} is not known`, remedy);
}
