/** The models that a shell may offer where one is to be named. */
import { UserError } from "../../errors.ts";
import { formatBytes } from "../../math.ts";
import { catalog } from "../../store/catalog.ts";
import { builtinName } from "../../store/model-name.ts";
import type { ModelStore } from "../../store/model-store.ts";
import { openStore } from "../model-choice.ts";
import type { Candidate } from "./candidates.ts";

/** Those that -m takes by name. */
export function namedModels(): Candidate[] {
  const inside = { word: builtinName, description: "the small model inside zinc" };
  return [inside, ...fromStore((store) => installed(store))];
}

/** Those that are here, and downloads that are not finished. */
export function removableModels(): Candidate[] {
  return fromStore((store) => {
    const partials = store.partials().map(({ name }) => ({
      word: name,
      description: "a download that is not finished",
    }));
    const all = [...installed(store), ...partials];
    return all.filter((one, i) => all.findIndex(({ word }) => word === one.word) === i);
  });
}

/** Those that zinc knows where to get. */
export function sources(): Candidate[] {
  return catalog.map(({ name, title, sizeBytes }) => ({
    word: name,
    description: sizeBytes === undefined ? title : `${title}, ${formatBytes(sizeBytes)}`,
  }));
}

function installed(store: ModelStore): Candidate[] {
  return store.list().map(({ name, sizeBytes }) => ({
    word: name,
    description: formatBytes(sizeBytes),
  }));
}

/** Nothing where the folder cannot be read: a shell is no place for that error. */
function fromStore(list: (store: ModelStore) => Candidate[]): Candidate[] {
  try {
    return list(openStore());
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return [];
  }
}
