/** The house style, as far as it can be checked: see what a failing test names. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  importsOf,
  listFiles,
  readSource,
  sources,
  withoutComments,
  type Source,
} from "./helpers/sources.ts";

/** Tables with a layout of their own, or made by programs. */
const tables = new Set([
  "src/vulkan/structs.ts",
  "src/vulkan/constants.ts",
  "src/kernels/shaders.ts",
  // A list of broken files.
  "test/gguf/malformed.test.ts",
]);

const code = sources("src", "test", "build.ts");
const product = code.filter(({ path }) => path.startsWith("src/"));
const shaders = listFiles("shaders").map(readSource);
const scripts = listFiles(".ci").map(readSource);
const written = [...code, ...shaders, ...scripts];

/** Where a pattern occurs, as "file:line". */
function places(
  where: readonly Source[],
  pattern: RegExp,
  strip = (text: string) => text,
): string[] {
  return where.flatMap(({ path, text }) =>
    strip(text)
      .split("\n")
      .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}`] : [])),
  );
}

const strings = [/"(?:[^"\\\n]|\\.)*"/, /'(?:[^'\\\n]|\\.)*'/, /`(?:[^`\\]|\\.)*`/];
const expression = /(?<=[(,=:[!&|?{;]\s*)\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/;
const quoted = new RegExp([...strings, expression].map(({ source }) => source).join("|"), "g");

/** Neither comments nor what is inside of strings and regular expressions. */
function bareCode(text: string): string {
  return withoutComments(text).replace(quoted, (all) => `"${all.replace(/[^\n]/g, "")}"`);
}

describe("each file", () => {
  test("opens with a comment that says what it is", () => {
    const silent = written.filter(({ text }) => !/^(#!.*\n)?(\/\*\*?|\/\/|#) ?\S*/.test(text));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  test("has at most 100 columns, a shader 120", () => {
    const wide = written
      .filter(({ path }) => !tables.has(path))
      .flatMap(({ path, text }) => {
        const limit = path.startsWith("shaders/") ? 120 : 100;
        return text
          .split("\n")
          .flatMap((line, i) => (columnsOf(line) > limit ? [`${path}:${i + 1}`] : []));
      });
    expect(wide).toEqual([]);
  });

  test("has at most 400 lines", () => {
    const long = written.filter(
      ({ path, text }) => !tables.has(path) && text.split("\n").length > 401,
    );
    expect(long.map(({ path, text }) => `${path}: ${text.split("\n").length - 1}`)).toEqual([]);
  });

  test("ends its lines without spaces, and itself with one end of line", () => {
    expect(places(written, /[ \t\r]$/)).toEqual([]);
    const ends = written.filter(({ text }) => !/[^\n]\n$/.test(text));
    expect(ends.map(({ path }) => path)).toEqual([]);
  });
});

describe("each function", () => {
  test("has at most 70 lines", () => {
    const long = code.flatMap(({ path, text }) =>
      functionsOf(text)
        .filter(({ lines }) => lines > 70)
        .map(({ line, lines }) => `${path}:${line}: ${lines} lines`),
    );
    expect(long).toEqual([]);
  });

  test("is found by this test", () => {
    const text = [
      "export function a(",
      "  b: number,",
      "): Promise<number> {",
      "  if (b) {",
      "  } else {",
      "  }",
      "}",
      'describe("group", () => {',
      '  test("one", async () => {',
      "  });",
      "});",
      "class A {",
      "  get b(): number {",
      "    return 1;",
      "  }",
      "}",
    ].join("\n");
    expect(functionsOf(text)).toEqual([
      { line: 3, lines: 5 },
      { line: 9, lines: 2 },
      { line: 13, lines: 3 },
    ]);
  });
});

describe("nothing", () => {
  test("is left for later", () => {
    const words = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"];
    expect(places(written, new RegExp(`\\b(${words.join("|")})\\b`))).toEqual([]);
  });

  test("escapes the type checker", () => {
    expect(places(product, /(?<=[:<,(|&=]\s*|\bas )any\b(?!\w)/, bareCode)).toEqual([]);
    expect(places(product, /[\w)\]]!(?=[.,;)\]([]|$| [^=])/, bareCode)).toEqual([]);
    expect(places(product, /@ts-(ignore|expect-error|nocheck)/)).toEqual([]);
  });

  test("is printed but by the command line's own output", () => {
    expect(places(product, /\bconsole\.(log|info|debug)\b/, bareCode)).toEqual([]);
    const inside = product.filter(({ path }) => !/^src\/cli(\.ts$|\/)/.test(path));
    expect(places(inside, /\bconsole\./, bareCode)).toEqual([]);
  });

  test("in tests runs alone or not at all without saying why", () => {
    expect(places(code, /\b(test|describe)\.only\(/, bareCode)).toEqual([]);
    expect(places(code, /\b(test|describe)\.(todo|skip)\(/, bareCode)).toEqual([]);
  });

  test("names a registry or a machine", () => {
    const texts = listFiles(".")
      .filter((path) => !/\.(gguf|bin|zst|png|ico|woff2)$/.test(path))
      .map(readSource);
    const hosts = ["registry\\.", "npmjs", "pypi", "deb\\.debian", "mirrors?\\.", "jsr\\.io"];
    expect(places(texts, new RegExp(`https?://[^/ ]*(${hosts.join("|")})`, "i"))).toEqual([]);
    const folders = ["work", "root", "home/\\w+", "Users/\\w+"];
    expect(places(texts, new RegExp(`(?<![\\w./$])/(${folders.join("|")})/`))).toEqual([]);
  });
});

describe("everything", () => {
  const imports = new Map(code.map((source) => [source.path, importsOf(source)]));

  test("is reachable: no file is dead", () => {
    const starts = code
      .map(({ path }) => path)
      .filter((path) =>
        [
          /\.test\.ts$/,
          /^(src\/(cli|index)|build|test\/(run|bench-gpu|http-speed|model\/oracle))\.ts$/,
          // Named and not imported: scripts of the page, and a Worker.
          /^src\/web\/(early\.ts|main\.tsx)$/,
          /^src\/server\/(?:grammar-)?worker\.ts$/,
        ].some((start) => start.test(path)),
      );
    // Preloaded by bunfig.toml; ambient types.
    const reached = new Set(["test/helpers/validation.ts", "src/assets.d.ts"]);
    const queue = [...starts, ...reached];
    for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
      reached.add(path);
      for (const { target } of imports.get(path) ?? []) {
        if (target !== undefined && !reached.has(target)) queue.push(target);
      }
    }
    // Kernels are collected by folder.
    const dead = code.map(({ path }) => path).filter((path) => !reached.has(path));
    expect(dead).toEqual([]);
  });

  test("is included: no part of a shader is dead", () => {
    const included = new Set(
      shaders.flatMap(({ path, text }) =>
        [...text.matchAll(/^#include "([^"]+)"/gm)].map(([, name = ""]) =>
          join(path.replace(/[^/]*$/, ""), name),
        ),
      ),
    );
    const dead = shaders.filter(({ path }) => path.endsWith(".glsl") && !included.has(path));
    expect(dead.map(({ path }) => path)).toEqual([]);
    const missing = [...included].filter((name) => !shaders.some(({ path }) => path === name));
    expect(missing).toEqual([]);
  });

  test("that is exported is used elsewhere, or says what something exported takes or gives", () => {
    const used = new Map<string, Set<string>>();
    for (const { target, names } of [...imports.values()].flat()) {
      if (target === undefined) continue;
      used.set(target, new Set([...(used.get(target) ?? []), ...names]));
    }
    const unused = product
      .filter(({ path }) => path !== "src/index.ts" && !used.get(path)?.has("*"))
      .flatMap((source) =>
        exportsOf(source)
          .filter(({ name, isType }) => {
            if (used.get(source.path)?.has(name) === true) return false;
            // Kernels are found by test/kernels/push-constants.test.ts, which imports the folder.
            if (source.path.startsWith("src/kernels/") && name.endsWith("Kernel")) return false;
            return !isType || countOf(source.text, name) < 2;
          })
          .map(({ name }) => `${source.path}: ${name}`),
      );
    expect(unused).toEqual([]);
  });
});

/** Tabs are not used; characters outside the first plane are one column here. */
function columnsOf(line: string): number {
  return [...line].length;
}

function exportsOf({ text }: Source): { name: string; isType: boolean }[] {
  const pattern =
    /^export (?:declare |abstract |async )*(const|let|function\*?|class|interface|type) (\w+)/gm;
  return [...text.matchAll(pattern)].map(([, kind, name = ""]) => ({
    name,
    isType: kind === "interface" || kind === "type",
  }));
}

function countOf(text: string, name: string): number {
  return withoutComments(text).match(new RegExp(`\\b${name}\\b`, "g"))?.length ?? 0;
}

/**
 * Functions of formatted code with the line at which the body opens. Groups of tests may be long:
 * they are lists.
 */
function functionsOf(text: string): { line: number; lines: number }[] {
  const lines = text.split("\n");
  const blocks = "if|for|while|switch|catch|else|describe";
  const opens = new RegExp(
    `^(\\s*)(?!\\s*(?:\\} )?(?:${blocks})\\b).*(?:\\)(?:: [^=;]+)?|=>) \\{$`,
  );
  return lines.flatMap((line, i) => {
    const indent = opens.exec(line)?.[1];
    if (indent === undefined) return [];
    const close = lines.findIndex(
      (other, k) => k > i && other.startsWith(`${indent}}`) && !other.endsWith("{"),
    );
    return close < 0 ? [] : [{ line: i + 1, lines: close - i + 1 }];
  });
}
