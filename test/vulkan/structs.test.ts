/**
 * Sizes, offsets and enum values are the C compiler's: of this machine's headers where there are
 * any, and of newer ones through the checked-in table.
 */
import { describe, expect, test } from "bun:test";
import * as structs from "../../src/vulkan/structs.ts";
import { compiledLayouts, declaredLayouts, type Layouts } from "../helpers/c-layouts.ts";
import table from "./layouts.json";

const declared = declaredLayouts();
const compiled = compiledLayouts();

describe("the checked-in table", () => {
  const checkedIn = table as unknown as Layouts;

  test("knows all that zinc declares (if not, `test/helpers/c-layouts.ts` says how)", () => {
    const missing = <T>(ours: Readonly<Record<string, T>>, theirs: Readonly<Record<string, T>>) =>
      Object.keys(ours).filter((name) => theirs[name] === undefined);
    expect(missing(declared.values, checkedIn.values)).toEqual([]);
    expect(missing(declared.structs, checkedIn.structs)).toEqual([]);
  });

  test.each(Object.keys(declared.structs))("agrees on %s", (name) => {
    expect(declared.structs[name]).toEqual(checkedIn.structs[name]);
  });

  test("agrees on every enum value", () => {
    expect(declared.values).toEqual(checkedIn.values);
  });
});

describe.skipIf(compiled === undefined)("this machine's compiler and headers", () => {
  const { values = {}, structs: layouts = {} } = compiled ?? {};

  test("know most of what zinc declares", () => {
    expect(Object.keys(layouts).length).toBeGreaterThanOrEqual(60);
    expect(Object.keys(values).length).toBeGreaterThanOrEqual(100);
  });

  test.each(Object.keys(layouts))("agree on %s", (name) => {
    expect(declared.structs[name]).toEqual(layouts[name]);
  });

  test("agree on every enum value", () => {
    const ours = Object.keys(values).map((name) => [name, declared.values[name]]);
    expect(Object.fromEntries(ours)).toEqual(values);
  });
});

describe("sType", () => {
  const typed = Object.values(structs).filter(({ fields }) => "sType" in fields);

  test.each(typed.map(({ name }) => name))("of %s is that struct's own", (name) => {
    const { fields } = structs[name as keyof typeof structs];
    const { constant } = (fields as { sType?: { constant?: number } }).sType ?? {};
    expect(constant).toBe(declared.values[structureTypeName(name)]);
  });
});

/** "VkMemoryAllocateInfo" → "VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO". */
function structureTypeName(name: string): string {
  const words = name
    .replace(/^Vk/, "")
    .replace("PCIBus", "PciBus")
    .replace(/Vulkan(\d)(\d)/, "Vulkan_$1_$2_")
    .replace(/(2|KHR|EXT)$/, "_$1")
    .replace(/(?<=[a-z])(?=[A-Z])/g, "_");
  return `VK_STRUCTURE_TYPE_${words.toUpperCase()}`;
}
