/** Where cache, models and configuration lie. */
import { describe, expect, test } from "bun:test";
import { homedir } from "node:os";
import { cacheFolder, configFolder, modelsFolder } from "../src/paths.ts";

describe.skipIf(process.platform === "win32")("the folder", () => {
  test.each([
    [{ HOME: "/h", XDG_CACHE_HOME: "/x" }, "/x/zinc"],
    [{ HOME: "/h" }, "/h/.cache/zinc"],
    [{ HOME: "/h", XDG_CACHE_HOME: "" }, "/h/.cache/zinc"],
    // The specification says that relative paths are to be ignored.
    [{ HOME: "/h", XDG_CACHE_HOME: "relative" }, "/h/.cache/zinc"],
    [{ HOME: "/h", LOCALAPPDATA: "C:\\local" }, "/h/.cache/zinc"],
  ])("of the cache with %p", (env, expected) => {
    expect(cacheFolder(env)).toBe(expected);
  });

  test.each([
    [{ HOME: "/h" }, "/h/.local/share/zinc/models"],
    [{ HOME: "/h", XDG_DATA_HOME: "/x" }, "/x/zinc/models"],
    [{ HOME: "/h", XDG_DATA_HOME: "x" }, "/h/.local/share/zinc/models"],
    [{ HOME: "/h", XDG_DATA_HOME: "/x", ZINC_MODELS: "/m" }, "/m"],
    [{ ZINC_MODELS: "m" }, `${process.cwd()}/m`],
  ])("of the models with %p", (env, expected) => {
    expect(modelsFolder(env)).toBe(expected);
  });

  test.each([
    [{ HOME: "/h" }, "/h/.config/zinc"],
    [{ HOME: "/h", XDG_CONFIG_HOME: "/x" }, "/x/zinc"],
  ])("of the configuration with %p", (env, expected) => {
    expect(configFolder(env)).toBe(expected);
  });
});

test("without HOME it is the home that the system knows", () => {
  const home = homedir();
  expect(cacheFolder({})).toBe(home === "" ? undefined : `${home}/.cache/zinc`);
});
