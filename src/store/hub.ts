/** Asks the hub which files a repository has, and chooses the one that is meant. */
import * as v from "valibot";
import { UserError } from "../errors.ts";
import { Exchange, withoutSecrets, type Access } from "./exchange.ts";
import { hubFile, partsOf, type Repository, type Source } from "./reference.ts";
import { impatient, Retry, type RetryOptions } from "./retry.ts";

/** What most people take: half the size of 8 bits, and hardly worse. */
const usualQuantization = "Q4_K_M";

/** The list of a repository is a few hundred kilobytes at most. */
const listBytesMax = 16 << 20;

const shownMax = 12;

const listing = v.array(
  v.object({
    type: v.string(),
    path: v.string(),
    size: v.optional(v.number()),
    lfs: v.optional(v.object({ oid: v.string() })),
  }),
);

type Listed = v.InferOutput<typeof listing>[number];

/** The files of the model that `wanted` means. Throws if there is none, or no telling which. */
export async function lookUp(
  wanted: Repository,
  endpoint: string,
  access: Access,
  retry: RetryOptions,
): Promise<Source> {
  const { repository, revision } = wanted;
  const url = `${endpoint}/api/models/${repository}/tree/${revision}?recursive=true`;
  const listed = parseListing(await readText(url, access, retry), repository);
  const path = choose(
    listed.map((file) => file.path),
    wanted,
  );
  const source = hubFile(repository, revision, path, endpoint);
  const byPath = new Map(listed.map((file) => [file.path, file]));
  const paths = partsOf(path);
  const files = source.files.map((file, i) => {
    const found = byPath.get(paths[i] ?? "");
    return { ...file, sizeBytes: found?.size, sha256: found?.lfs?.oid };
  });
  return { ...source, files };
}

async function readText(url: string, access: Access, options: RetryOptions): Promise<string> {
  const retry = new Retry(withoutSecrets(url), impatient(options));
  for (;;) {
    try {
      using exchange = await Exchange.open(url, undefined, access, options);
      const chunks: Uint8Array[] = [];
      let byteSize = 0;
      for await (const chunk of exchange.chunks()) {
        chunks.push(chunk);
        byteSize += chunk.length;
        if (byteSize > listBytesMax) throw new UserError("failed", `${url} does not end`);
      }
      return Buffer.concat(chunks).toString();
    } catch (error) {
      await retry.pause(error);
    }
  }
}

function parseListing(text: string, repository: string): Listed[] {
  try {
    return v.parse(listing, JSON.parse(text)).filter(({ type }) => type === "file");
  } catch (cause) {
    const message = `the hub's list of the files of ${repository} cannot be understood`;
    throw new UserError("failed", message, "name the file: hf:owner/repo/file.gguf", { cause });
  }
}

/** One model's file, its first part if it is split. Exported for its tests. */
export function choose(paths: readonly string[], wanted: Repository): string {
  const { repository, quantization } = wanted;
  const models = paths.filter(isModel);
  if (models.length === 0) {
    const remedy = "look for a repository whose name ends with GGUF";
    throw new UserError("model", `${repository} has no .gguf files`, remedy);
  }
  const fitting = models
    .filter((path) => hasQuantization(path, quantization ?? usualQuantization))
    // "model-Q4_K_M.gguf" before "model-UD-Q4_K_M.gguf".
    .toSorted((a, b) => a.length - b.length);
  const [first] = fitting;
  if (first !== undefined) return first;
  const [only] = models;
  if (quantization === undefined && models.length === 1 && only !== undefined) return only;
  const more = models.length > shownMax ? " …" : "";
  const what = quantization ?? usualQuantization;
  const shown = models.slice(0, shownMax).join(" ") + more;
  throw new UserError("model", `${repository} has no ${what}`, `it has ${shown}`);
}

/** Not the vision part of a model, nor the statistics that it was quantized with. */
function isModel(path: string): boolean {
  const part = /-(\d{5})-of-\d{5}\.gguf$/i.exec(path)?.[1];
  const isOther = /(^|[/._-])(mmproj|imatrix)/i.test(path);
  return /\.gguf$/i.test(path) && !isOther && (part === undefined || part === "00001");
}

function hasQuantization(path: string, quantization: string): boolean {
  const words = path.toLowerCase().split(/[/.-]/);
  const wanted = quantization.toLowerCase().split("-");
  return words.some((_word, i) => wanted.every((part, k) => words[i + k] === part));
}
