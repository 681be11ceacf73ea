/** Where zinc keeps its files: the XDG folders, and their equivalents on Windows. */
import { homedir } from "node:os";
import { join } from "node:path";

/** Compiled pipelines and other things that can be made again; undefined where no home is known. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const xdg = env["XDG_CACHE_HOME"];
  // The specification says that relative paths are to be ignored.
  if (xdg?.startsWith("/")) return join(xdg, "zinc");
  const local = env["LOCALAPPDATA"];
  if (process.platform === "win32" && local) return join(local, "zinc", "cache");
  const home = env["HOME"] || homedir();
  return home ? join(home, ".cache", "zinc") : undefined;
}
