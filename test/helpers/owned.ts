/** What a test makes on the device is freed behind it, the last thing first. */
import { afterEach } from "bun:test";

export type Own = <T extends { free(): void }>(thing: T) => T;

/** To be called once at the top of a file. */
export function ownedByEachTest(): Own {
  const owned: { free(): void }[] = [];
  afterEach(() => {
    for (const thing of owned.splice(0).toReversed()) thing.free();
  });
  return (thing) => {
    owned.push(thing);
    return thing;
  };
}
