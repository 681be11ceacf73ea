/**
 * Builds zinc: GLSL → SPIR-V and the chat page → embedded files with tables of contents →
 * `bun build --compile`.
 *
 *     bun run build.ts              shaders, page and dist/zinc for this machine
 *     bun run build.ts --shaders    only the shaders and the page (enough to run from source)
 *     bun run build.ts --all        dist/zinc-linux-x64, -linux-arm64 and -windows-x64.exe, and
 *                                   dist/SHA256SUMS
 */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { dtypes } from "./src/tensor/dtype.ts";

const root = import.meta.dir;
const shaderFolder = join(root, "shaders");
const cacheFolder = join(root, "node_modules/.cache/zinc/spirv");
const glslc = join(root, "node_modules/.cache/zinc/glslc");
const compileFlags = ["--target-env=vulkan1.2", "-O"];

const targets = {
  // The same file as Bun's baseline: it runs without AVX2.
  "linux-x64": "bun-linux-x64",
  "linux-arm64": "bun-linux-arm64",
  "windows-x64": "bun-windows-x64",
} as const;

interface Variant {
  /** File name without extension, then the value of each axis: "matvec.Q4_K.subgroup". */
  readonly name: string;
  readonly source: string;
  readonly defines: readonly string[];
}

/**
 * One variant for each combination of the axes that `@variant AXIS: value value …` comments name.
 */
function variantsOf(source: string): Variant[] {
  const text = readFileSync(join(shaderFolder, source), "utf8");
  let variants: Variant[] = [{ name: basename(source, ".comp"), source, defines: [] }];
  for (const [, axis, list] of text.matchAll(/^\/\/ @variant (\w+): (.+)$/gm)) {
    const values = list?.trim() === "*" ? dtypes : (list?.trim().split(/\s+/) ?? []);
    variants = variants.flatMap(({ name, defines }) =>
      values.map((value) => ({
        name: `${name}.${value}`,
        source,
        defines: [...defines, `-D${axis}_${value}`],
      })),
    );
  }
  const excluded = [...text.matchAll(/^\/\/ @except (.+)$/gm)].map(([, list]) =>
    (list ?? "").trim().split(/\s+/),
  );
  return variants.filter(({ name }) => {
    const values = name.split(".").slice(1);
    return !excluded.some((list) => list.every((value) => values.includes(value)));
  });
}

/** Compiles what changed, as many at a time as there are cores, and returns the SPIR-V by name. */
async function compileShaders(): Promise<Map<string, Uint8Array>> {
  const compiler = compilerVersion();
  const includes = readdirSync(join(shaderFolder, "include"), {
    recursive: true,
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
    .join("\0");
  const sources = readdirSync(shaderFolder)
    .filter((name) => name.endsWith(".comp"))
    .toSorted();
  const variants = sources.flatMap(variantsOf);
  mkdirSync(cacheFolder, { recursive: true });
  const results = new Map<string, Uint8Array>();
  const queue = [...variants];
  let compiledCount = 0;
  const worker = async () => {
    for (let variant = queue.pop(); variant !== undefined; variant = queue.pop()) {
      const text = readFileSync(join(shaderFolder, variant.source), "utf8");
      const key = Bun.hash(
        [compiler, ...compileFlags, ...variant.defines, includes, text].join("\0"),
      );
      const output = join(cacheFolder, `${key.toString(16)}.spv`);
      if (!existsSync(output)) {
        await compile(variant, output);
        compiledCount++;
        progress(`shaders: ${variants.length - queue.length} of ${variants.length}`);
      }
      results.set(variant.name, new Uint8Array(readFileSync(output)));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  progress("");
  console.error(`shaders: ${variants.length} variants, ${compiledCount} compiled`);
  return new Map(variants.map(({ name }) => [name, results.get(name) ?? new Uint8Array()]));
}

async function compile(variant: Variant, output: string): Promise<void> {
  const temporary = `${output}.${process.pid}`;
  const source = join(shaderFolder, variant.source);
  const command = [glslc, ...compileFlags, ...variant.defines, source, "-o", temporary];
  const child = Bun.spawn(command, { stderr: "pipe" });
  const [message, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`${variant.name}: ${message.trim()}`);
  if (message.trim() !== "") console.error(message.trim());
  renameSync(temporary, output);
}

function compilerVersion(): string {
  if (!existsSync(glslc)) throw new Error("glslc is missing: run `npm run setup` first");
  const { stdout } = Bun.spawnSync([glslc, "--version"]);
  const [version] = stdout.toString().split("\n");
  return version?.trim() ?? "unknown";
}

/** Writes the modules as one file and their offsets as a table that type-checks the names. */
function writeShaders(modules: ReadonlyMap<string, Uint8Array>): void {
  const rows: string[] = [];
  let offset = 0;
  for (const [name, spirv] of modules) {
    rows.push(`  "${name}": [${offset}, ${spirv.length}],`);
    offset += spirv.length;
  }
  const table = [
    "/** Generated by build.ts: the embedded SPIR-V modules, by name, as [offset, byteSize]. */",
    'import path from "./shaders.bin" with { type: "file" };',
    "",
    "export const shaderPath: string = path;",
    `export const compilerVersion = ${JSON.stringify(compilerVersion())};`,
    "export const shaderTable = {",
    ...rows,
    "} as const;",
    "export type ShaderName = keyof typeof shaderTable;",
    "",
  ];
  writeFileSync(join(root, "src/kernels/shaders.bin"), Buffer.concat([...modules.values()]));
  writeFileSync(join(root, "src/kernels/shaders.ts"), table.join("\n"));
}

/** The fonts of the chat page, in Latin letters: the name in the page, and the package's file. */
const fonts = {
  "serif-400": "serif-latin-400-normal",
  "serif-400-italic": "serif-latin-400-italic",
  "serif-600": "serif-latin-600-normal",
  "sans-400": "sans-latin-400-normal",
  "sans-600": "sans-latin-600-normal",
  "mono-400": "mono-latin-400-normal",
} as const;

interface PageFile {
  readonly path: string;
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** Bundles the chat page's scripts and styles, and adds what goes as it is. */
async function bundlePage(): Promise<PageFile[]> {
  const web = join(root, "src/web");
  const result = await Bun.build({
    entrypoints: [join(web, "main.tsx"), join(web, "early.ts"), join(web, "style/page.css")],
    target: "browser",
    minify: true,
    // Served from their own addresses.
    external: ["/fonts/*"],
    naming: "[name].[ext]",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  if (!result.success) throw new AggregateError(result.logs, "bundling the page failed");
  const built = await Promise.all(
    result.outputs.map(async (output) => {
      const name = basename(output.path).replace(/^main\./, "page.");
      const bytes = new Uint8Array(await output.arrayBuffer());
      const type = name.endsWith(".css") ? "text/css" : "text/javascript";
      return { path: `/${name}`, type: `${type}; charset=utf-8`, bytes };
    }),
  );
  const asItIs = (path: string, type: string, file: string) => ({
    path,
    type,
    bytes: new Uint8Array(readFileSync(file)),
  });
  return [
    asItIs("/", "text/html; charset=utf-8", join(web, "index.html")),
    asItIs("/icon.svg", "image/svg+xml", join(web, "icon.svg")),
    ...built,
    ...Object.entries(fonts).map(([name, file]) => {
      const family = `ibm-plex-${file.split("-")[0]}`;
      const source = `node_modules/@fontsource/${family}/files/ibm-plex-${file}.woff2`;
      return asItIs(`/fonts/${name}.woff2`, "font/woff2", join(root, source));
    }),
  ];
}

/** Writes the page's files as one, and where each of them is. */
function writePage(files: readonly PageFile[]): void {
  const rows: string[] = [];
  let offset = 0;
  for (const { path, type, bytes } of files) {
    const tag = Bun.hash(bytes).toString(36);
    const entry = { offset, size: bytes.length, type, tag };
    rows.push(`  ${JSON.stringify(path)}: ${JSON.stringify(entry)},`);
    offset += bytes.length;
  }
  const table = [
    "/** Generated by build.ts: the files of the chat page, by path. */",
    'import path from "./bundle.bin" with { type: "file" };',
    "",
    "export interface PageEntry {",
    "  readonly offset: number;",
    "  readonly size: number;",
    "  readonly type: string;",
    "  readonly tag: string;",
    "}",
    "export const bundlePath: string = path;",
    "export const bundleTable: Readonly<Record<string, PageEntry>> = {",
    ...rows,
    "};",
    "",
  ];
  writeFileSync(join(root, "src/web/bundle.bin"), Buffer.concat(files.map(({ bytes }) => bytes)));
  writeFileSync(join(root, "src/web/bundle.ts"), table.join("\n"));
  console.error(`page: ${files.length} files, ${Math.round(offset / 1000)} kB`);
}

/** Returns the name of the executable. */
async function compileBinary(output: string, target?: string): Promise<string> {
  mkdirSync(join(root, "dist"), { recursive: true });
  const result = await Bun.build({
    // A Worker's file is found in the executable only if it is an entry of its own.
    entrypoints: ["cli.ts", "server/worker.ts", "server/grammar-worker.ts"].map((file) =>
      join(root, "src", file),
    ),
    minify: { whitespace: true, syntax: true, identifiers: false },
    define: { "process.env.ZINC_BUILD": JSON.stringify(buildName()) },
    compile: {
      outfile: join(root, "dist", output),
      autoloadDotenv: false,
      autoloadBunfig: false,
      ...(target === undefined ? {} : { target: target as "bun-linux-x64" }),
    },
  });
  if (!result.success) throw new AggregateError(result.logs, "bun build failed");
  const name = existsSync(join(root, "dist", output)) ? output : `${output}.exe`;
  console.error(`dist/${name}`);
  return name;
}

/** In the form that `sha256sum --check` reads. */
function writeChecksums(names: readonly string[]): void {
  const lines = names.map((name) => {
    const bytes = readFileSync(join(root, "dist", name));
    return `${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}  ${name}\n`;
  });
  writeFileSync(join(root, "dist/SHA256SUMS"), lines.join(""));
  console.error("dist/SHA256SUMS");
}

/** The commit that is built, for `zinc --version`. */
function buildName(): string {
  const { stdout, exitCode } = Bun.spawnSync(["git", "describe", "--always", "--dirty"], {
    cwd: root,
  });
  return exitCode === 0 ? stdout.toString().trim() : "unknown";
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

const flags = new Set(process.argv.slice(2));
for (const flag of flags) {
  if (flag !== "--all" && flag !== "--shaders") throw new Error(`unknown flag ${flag}`);
}
writeShaders(await compileShaders());
writePage(await bundlePage());
if (!flags.has("--shaders")) {
  if (flags.has("--all")) {
    const names: string[] = [];
    for (const [name, target] of Object.entries(targets)) {
      names.push(await compileBinary(`zinc-${name}`, target));
    }
    writeChecksums(names);
  } else {
    await compileBinary("zinc");
  }
}
