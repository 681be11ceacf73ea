/** A schema that answers cannot be held to. */

export class UnsupportedSchema extends Error {
  override readonly name = "UnsupportedSchema";

  /** `place` is where in the schema: "schema.properties.a". */
  constructor(place: string, reason: string) {
    super(`${place}: ${reason}`);
  }
}
