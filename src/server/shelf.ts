/** The models that a server offers, of which one at a time is loaded. */

export interface OfferedModel {
  /** Its name in the API. */
  readonly id: string;
  /** A GGUF file; undefined for the model inside zinc. */
  readonly path: string | undefined;
  readonly sizeBytes?: number | undefined;
}

export interface Shelf {
  /** The one that the server was started with. */
  readonly main: OfferedModel;
  /** By the name that a request gives. */
  find(name: string): OfferedModel | undefined;
  /** The main one first. */
  list(): readonly OfferedModel[];
}
