/**
 * Imports point one way:
 *
 *     cli → server → chat → engine → model → kernels → tensor → vulkan
 *
 * with tokenizer → gguf and store → gguf beside them, and errors, math and paths below all.
 */
import { describe, expect, test } from "bun:test";
import { importsOf, sources, type Import, type Source } from "./helpers/sources.ts";
import { dependencies, devDependencies } from "../package.json";

const all = sources("src");
const imports = new Map(all.map((source) => [source.path, importsOf(source)]));

/** Files at the bottom: they import nothing of ours. */
const leaves = ["errors.ts", "math.ts", "paths.ts"];

/** For each folder of src, or file beside the folders: where it may import from. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  vulkan: [],
  tensor: ["vulkan"],
  kernels: ["tensor", "vulkan"],
  gguf: ["tensor/dtype.ts"],
  tokenizer: ["gguf"],
  model: ["kernels", "tensor", "vulkan", "gguf"],
  engine: ["model", "kernels", "tensor", "vulkan"],
  chat: ["engine", "tokenizer", "gguf"],
  store: ["gguf"],
  server: ["chat", "engine", "tokenizer", "gguf", "web/page.ts", "index.ts"],
  web: [],
  builtin: ["gguf"],
  "index.ts": ["builtin", "chat", "tokenizer", "engine", "model", "gguf", "vulkan"],
  cli: [
    "index.ts",
    "builtin",
    "server",
    "web",
    "store",
    "chat",
    "tokenizer",
    "engine",
    "model",
    "kernels",
    "gguf",
    "vulkan",
  ],
  "cli.ts": ["cli", "vulkan"],
  "assets.d.ts": [],
};

/** "src/vulkan/arena.ts" → "vulkan"; "src/index.ts" → "index.ts". */
function partOf(path: string): string {
  return path.split("/")[1] ?? "";
}

/** Every import that breaks a rule, as "from → to". */
function offences(breaks: (source: Source, imported: Import) => boolean): string[] {
  return all.flatMap((source) =>
    (imports.get(source.path) ?? [])
      .filter((imported) => breaks(source, imported))
      .map(({ specifier, target }) => `${source.path} → ${target ?? specifier}`),
  );
}

function isAllowed(from: string, target: string): boolean {
  if (!target.startsWith("src/")) return from === "src/cli/version.ts" && target === "package.json";
  const [part, inside] = [partOf(from), target.slice("src/".length)];
  if (partOf(target) === part) return true;
  if (leaves.includes(part)) return false;
  return [...leaves, ...(mayImport[part] ?? [])].some(
    (allowed) => inside === allowed || inside.startsWith(`${allowed}/`),
  );
}

/** Types that a dependency has and does not export: nothing of them is left when it runs. */
function isPackaged(target: string): boolean {
  return Object.keys(dependencies).some((name) => target.startsWith(`node_modules/${name}/`));
}

describe("imports", () => {
  test("point one way", () => {
    expect(
      offences(
        ({ path }, { target, isType }) =>
          target !== undefined && !isAllowed(path, target) && !(isType && isPackaged(target)),
      ),
    ).toEqual([]);
  });

  test("of every folder are ruled", () => {
    const ruled = [...Object.keys(mayImport), ...leaves];
    expect(all.map(({ path }) => partOf(path)).filter((part) => !ruled.includes(part))).toEqual([]);
  });

  test("never go round, and types refer to each other within a folder alone", () => {
    const values = (path: string) =>
      (imports.get(path) ?? []).flatMap(({ target, isType }) =>
        target && !isType ? [target] : [],
      );
    const everything = (path: string) =>
      (imports.get(path) ?? []).flatMap(({ target }) => (target ? [target] : []));
    const paths = all.map(({ path }) => path);
    expect(circles(paths, values)).toEqual([]);
    const across = circles(paths, everything).filter(
      (circle) => new Set(circle.map(partOf)).size > 1,
    );
    expect(across).toEqual([]);
  });

  test("name files with their ending, and packages that are dependencies", () => {
    const known = Object.keys(dependencies);
    expect(
      offences((_, { specifier }) => {
        if (specifier.startsWith(".")) return !/\.(tsx?|json|bin|gguf)$/.test(specifier);
        if (/^(node|bun):/.test(specifier)) return false;
        return !known.some((name) => specifier === name || specifier.startsWith(`${name}/`));
      }),
    ).toEqual([]);
    // What the tests alone need: types, a judge of JSON, the official clients, and a browser's.
    expect(Object.keys(devDependencies).toSorted()).toEqual([
      "@anthropic-ai/sdk",
      "@types/bun",
      "ajv",
      "axe-core",
      "bun",
      "ollama",
      "openai",
      "playwright-core",
    ]);
  });
});

describe("only", () => {
  const only = (what: RegExp, where: RegExp) =>
    offences(({ path }, { specifier }) => what.test(specifier) && !where.test(path));

  test("src/vulkan talks to native code", () => {
    expect(only(/^bun:ffi$/, /^src\/vulkan\//)).toEqual([]);
  });

  test("src/kernels/shaders.ts holds the shaders", () => {
    expect(only(/\.(bin|spv)$/, /^src\/kernels\/shaders\.ts$/)).toEqual([]);
  });

  test("src/builtin holds the model", () => {
    expect(only(/\.gguf$/, /^src\/builtin\//)).toEqual([]);
  });

  test("the command line writes to the terminal and knows its parser", () => {
    expect(only(/^(consola|citty)/, /^src\/cli(\.ts$|\/)/)).toEqual([]);
  });

  test("the page brings packages into the browser", () => {
    const packages = /^(preact|markdown-it|dompurify|highlight\.js|eventsource-parser)/;
    expect(only(packages, /^src\/web\//)).toEqual([]);
  });

  test("the edges validate what comes from outside", () => {
    const edges =
      /^src\/(cli\/|server\/schema\/|store\/|model\/config\.ts$|engine\/tuning-file\.ts$)/;
    expect(only(/^valibot/, edges)).toEqual([]);
  });

  test.each([
    [
      "the command line ends the process",
      /\bprocess\.exit\(/,
      ["src/cli.ts", "src/cli/signals.ts"],
    ],
    ["the server listens", /\bBun\.serve\(/, ["src/server/server.ts"]],
  ])("%s", (_, pattern, allowed) => {
    const found = all.filter(({ text }) => pattern.test(text)).map(({ path }) => path);
    expect(found.filter((path) => !allowed.includes(path))).toEqual([]);
  });
});

describe("the rules themselves", () => {
  const offender = (text: string) => importsOf({ path: "src/vulkan/x.ts", text })[0];

  test.each([
    ['import { a } from "../engine/b.ts";', "src/engine/b.ts"],
    ['import type { A } from "../engine/b.ts";', "src/engine/b.ts"],
    ['import * as a from "../engine/b.ts";', "src/engine/b.ts"],
    ['import a, {\n  b,\n  type C,\n} from "../engine/b.ts";', "src/engine/b.ts"],
    ['export { a } from "../engine/b.ts";', "src/engine/b.ts"],
    ['import "../engine/b.ts";', "src/engine/b.ts"],
    ['const a = await import("../engine/b.ts");', "src/engine/b.ts"],
    [
      'const { default: a } = await import("./b.gguf", { with: { type: "file" } });',
      "src/vulkan/b.gguf",
    ],
  ])("see %j", (text, target) => {
    expect(offender(text)?.target).toBe(target);
  });

  test("do not see what stands in comments", () => {
    expect(offender('/*\nimport { load } from "zinc";\n*/\n// import("x")')).toBeUndefined();
  });

  test("find an import upwards and a circle", () => {
    expect(isAllowed("src/vulkan/arena.ts", "src/engine/engine.ts")).toBe(false);
    expect(isAllowed("src/gguf/file.ts", "src/tensor/planes.ts")).toBe(false);
    expect(isAllowed("src/errors.ts", "src/vulkan/arena.ts")).toBe(false);
    const graph: Readonly<Record<string, string[]>> = { a: ["b"], b: ["c", "d"], c: ["a"], d: [] };
    expect(circles(Object.keys(graph), (node) => graph[node] ?? [])).toEqual([["a", "b", "c"]]);
  });

  test("look at all there is", () => {
    expect(all.length).toBeGreaterThan(100);
    expect(imports.get("src/vulkan/gpu.ts")?.length).toBeGreaterThan(4);
  });
});

/** Groups of nodes that reach each other (Tarjan 1972), each sorted. */
function circles(nodes: readonly string[], next: (node: string) => readonly string[]): string[][] {
  const found: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const visit = (node: string): number => {
    const number = order.size;
    order.set(node, number);
    path.push(node);
    let low = number;
    for (const other of next(node)) {
      if (!order.has(other)) low = Math.min(low, visit(other));
      else if (path.includes(other))
        low = Math.min(low, lowest.get(other) ?? order.get(other) ?? low);
    }
    lowest.set(node, low);
    if (low === number) {
      const circle = path.splice(path.indexOf(node));
      if (circle.length > 1) found.push(circle.toSorted());
    }
    return low;
  };
  for (const node of nodes) if (!order.has(node)) visit(node);
  return found;
}
