/** Where the cache lies. */
import { expect, test } from "bun:test";
import { homedir } from "node:os";
import { cacheFolder } from "../src/paths.ts";

test.skipIf(process.platform === "win32").each([
  [{ HOME: "/h", XDG_CACHE_HOME: "/x" }, "/x/zinc"],
  [{ HOME: "/h" }, "/h/.cache/zinc"],
  [{ HOME: "/h", XDG_CACHE_HOME: "" }, "/h/.cache/zinc"],
  // The specification says that relative paths are to be ignored.
  [{ HOME: "/h", XDG_CACHE_HOME: "relative" }, "/h/.cache/zinc"],
  [{ HOME: "/h", LOCALAPPDATA: "C:\\local" }, "/h/.cache/zinc"],
])("%p", (env, expected) => {
  expect(cacheFolder(env)).toBe(expected);
});

test("without HOME it is the home that the system knows", () => {
  const home = homedir();
  expect(cacheFolder({})).toBe(home === "" ? undefined : `${home}/.cache/zinc`);
});
