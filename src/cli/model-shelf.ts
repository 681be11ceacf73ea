/** What `zinc serve` offers: the model it started with, the managed ones, the one inside zinc. */
import { resolve } from "node:path";
import { modelsFolder } from "../paths.ts";
import type { OfferedModel, Shelf } from "../server/shelf.ts";
import { builtinName, normalName } from "../store/model-name.ts";
import { ModelStore } from "../store/model-store.ts";

const builtin: OfferedModel = { id: builtinName, path: undefined };

/** Looks into the folder of models whenever it is asked: some come while the server runs. */
export function modelShelf(main: OfferedModel, isSingle: boolean): Shelf {
  const folder = isSingle ? undefined : modelsFolder();
  const store = folder === undefined ? undefined : new ModelStore(folder);
  const others = (): OfferedModel[] => [
    ...(store?.list() ?? []).map(({ name, path, sizeBytes }) => ({ id: name, path, sizeBytes })),
    ...(isSingle ? [] : [builtin]),
  ];
  const mainPath = main.path === undefined ? undefined : resolve(main.path);
  const isMain = ({ path }: OfferedModel) => path === mainPath;
  return {
    main,
    list: () => [main, ...others().filter((one) => !isMain(one))],
    find(name) {
      if (name === main.id) return main;
      if (isSingle) return undefined;
      const found = others().find(({ id }) => id === normalName(name));
      // It has another name, and is the same all the same.
      return found !== undefined && isMain(found) ? main : found;
    },
  };
}
