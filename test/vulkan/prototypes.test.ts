/**
 * The prototypes that `src/vulkan/library.ts` gives to `bun:ffi` against those of the C headers: a
 * wrong width or a missing argument would only show as garbage.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const headerPath = "/usr/include/vulkan/vulkan_core.h";
const header = existsSync(headerPath) ? readFileSync(headerPath, "utf8") : undefined;
const source = readFileSync(join(import.meta.dir, "../../src/vulkan/library.ts"), "utf8");

interface Prototype {
  readonly args: readonly string[];
  readonly returns: string;
}

const ours = new Map<string, Prototype>(
  [...source.matchAll(/(vk\w+): \{\s*args: \[([^\]]*)\],\s*returns: "(\w+)",?\s*\}/g)].map(
    ([, name = "", args = "", returns = ""]) => [
      name,
      { args: [...args.matchAll(/"(\w+)"/g)].map(([, arg = ""]) => arg), returns },
    ],
  ),
);

/** Handles that are 64 opaque bits; all others are pointers. */
const opaque = new Set(
  [...(header ?? "").matchAll(/VK_DEFINE_NON_DISPATCHABLE_HANDLE\((\w+)\)/g)].map(
    ([, type]) => type,
  ),
);

/** The type of a parameter or result of C, as `bun:ffi` calls it. */
function ffiType(declaration: string): string {
  const type = declaration.replace(/const|struct/g, "").trim();
  if (/^char\s*\*/.test(type)) return "cstring";
  if (type.includes("*")) return "ptr";
  const [name = ""] = type.split(/\s+/);
  if (name === "void") return "void";
  if (name === "uint64_t" || name === "size_t" || name === "VkDeviceSize") return "u64";
  if (name === "VkDeviceAddress" || opaque.has(name)) return "u64";
  if (name === "PFN_vkVoidFunction") return "ptr";
  if (/^(uint32_t|VkBool32|Vk\w+Flags)$/.test(name)) return "u32";
  // Dispatchable handles; whatever is left is an enum.
  return /^Vk(Instance|PhysicalDevice|Device|Queue|CommandBuffer)$/.test(name) ? "ptr" : "i32";
}

/** Core functions are also promoted extensions: either name has the same prototype. */
function inC(name: string): Prototype | undefined {
  const pattern = new RegExp(`typedef (\\w+) \\(VKAPI_PTR \\*PFN_${name}\\)\\(([^)]*)\\)`);
  const [, returns = "", parameters = ""] = pattern.exec(header ?? "") ?? [];
  if (returns === "") return undefined;
  return { args: parameters.split(",").map(ffiType), returns: ffiType(returns) };
}

/** What matters to a call: how wide each value is, and whether it is a number or an address. */
function widths({ args, returns }: Prototype = { args: [], returns: "missing" }): string[] {
  const width: Readonly<Record<string, string>> = {
    cstring: "ptr",
    i32: "32 bits",
    u32: "32 bits",
  };
  return [...args, returns].map((type) => width[type] ?? type);
}

describe.skipIf(header === undefined)("the prototype", () => {
  test("tables are found in the source", () => {
    expect(ours.size).toBe((source.match(/vk\w+: \{/g) ?? []).length);
    expect(ours.size).toBeGreaterThan(50);
  });

  test.each([...ours.keys()].filter((name) => inC(name) !== undefined))("of %s", (name) => {
    expect(widths(ours.get(name))).toEqual(widths(inC(name)));
  });

  test("of no more than the newest functions is unknown to these headers", () => {
    const unknown = [...ours.keys()].filter((name) => inC(name) === undefined);
    expect(unknown.filter((name) => !name.includes("CooperativeMatrix"))).toEqual([]);
  });
});
