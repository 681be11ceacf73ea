/** The repository as the house rules see it: its files, and which imports which. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";

export const root = join(import.meta.dir, "../..");

export interface Source {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
}

export interface Import {
  /** As written. */
  readonly specifier: string;
  /** The file, from the root of the repository; undefined for packages. */
  readonly target: string | undefined;
  /** Leaves nothing behind when types are stripped. */
  readonly isType: boolean;
  /** The imported names; "*" for all, or for what cannot be told. */
  readonly names: readonly string[];
}

/** All files under these folders, and these files, as git knows them; new ones, too. */
export function listFiles(...paths: string[]): string[] {
  const command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", ...paths];
  const { stdout, exitCode } = Bun.spawnSync(command, { cwd: root });
  if (exitCode !== 0) throw new Error("git ls-files failed");
  const names = new Set(stdout.toString().split("\0").filter(Boolean));
  // What is deleted and not committed is still listed.
  return [...names].filter((name) => existsSync(join(root, name))).toSorted();
}

export function readSource(path: string): Source {
  return { path, text: readFileSync(join(root, path), "utf8") };
}

/** Every TypeScript file under these folders, and these files. */
export function sources(...paths: string[]): Source[] {
  return listFiles(...paths)
    .filter((path) => [".ts", ".tsx"].includes(extname(path)))
    .map(readSource);
}

const clause = /\*(?:\s+as\s+\w+)?|\w+|\{[^}]*\}|\w+,\s*\{[^}]*\}/.source;
const importPattern = new RegExp(
  `^(?:import|export)\\s+(type\\s+)?(?:(${clause})\\s+from\\s+)?"([^"]+)"`,
  "gm",
);
const dynamicPattern = /\bimport\("([^"]+)"[^)]*\)/g;

export function importsOf({ path, text }: Source): Import[] {
  const make = (specifier: string, isType: boolean, names: readonly string[]): Import => ({
    specifier,
    target: specifier.startsWith(".")
      ? relative(root, join(root, dirname(path), specifier))
      : undefined,
    isType,
    names,
  });
  const code = withoutComments(text);
  const statics = [...code.matchAll(importPattern)].map(([, type, what = "", specifier = ""]) => {
    const parts = namesIn(what);
    const names = parts?.map((part) => part.replace(/^type\s+/, "").replace(/\s+as\s+\w+$/, ""));
    const allTypes = parts?.length !== 0 && parts?.every((part) => part.startsWith("type "));
    return make(specifier, type !== undefined || allTypes === true, names ?? ["*"]);
  });
  const dynamics = [...code.matchAll(dynamicPattern)].map(([, specifier = ""]) =>
    make(specifier, false, ["*"]),
  );
  return [...statics, ...dynamics];
}

/** "a", "type B" of "{ a, type B }"; undefined for other clauses. */
function namesIn(what: string): string[] | undefined {
  const listed = /\{([^}]*)\}/.exec(what)?.[1];
  return listed
    ?.split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

/** Comments hold examples; strings are kept. */
export function withoutComments(text: string): string {
  return text.replace(
    /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|\/\*[^]*?\*\/|\/\/[^\n]*/g,
    (all, string: string | undefined) => string ?? all.replace(/[^\n]/g, " "),
  );
}
