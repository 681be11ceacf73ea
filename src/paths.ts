/** Where zinc keeps its files: the XDG folders, and their equivalents on Windows. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Compiled pipelines and other things that can be made again; undefined where no home is known. */
export function cacheFolder(env: Environment = process.env): string | undefined {
  return folder(env, "XDG_CACHE_HOME", ["LOCALAPPDATA", "zinc", "cache"], ".cache");
}

/** Downloaded models. They take hours to fetch again, so they are no cache. */
export function modelsFolder(env: Environment = process.env): string | undefined {
  if (env["ZINC_MODELS"]) return resolve(env["ZINC_MODELS"]);
  const data = folder(env, "XDG_DATA_HOME", ["LOCALAPPDATA", "zinc"], ".local", "share");
  return data && join(data, "models");
}

/** What the user has chosen. */
export function configFolder(env: Environment = process.env): string | undefined {
  return folder(env, "XDG_CONFIG_HOME", ["APPDATA", "zinc"], ".config");
}

function folder(
  env: Environment,
  variable: string,
  [windowsVariable, ...windowsParts]: readonly [string, ...string[]],
  ...homeParts: readonly string[]
): string | undefined {
  const xdg = env[variable];
  // The specification says that relative paths are to be ignored.
  if (xdg?.startsWith("/")) return join(xdg, "zinc");
  const windows = env[windowsVariable];
  if (process.platform === "win32" && windows) return join(windows, ...windowsParts);
  const home = env["HOME"] || homedir();
  return home ? join(home, ...homeParts, "zinc") : undefined;
}
