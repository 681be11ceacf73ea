/** What a person writes to name a model elsewhere → the addresses of its files. Pure. */
import { UserError } from "../errors.ts";
import { limits } from "../gguf/limits.ts";
import { partPaths } from "../gguf/split.ts";
import { catalogEntry, hubUrl } from "./catalog.ts";
import { nameOfFile } from "./model-name.ts";

/** One file that a server has. */
export interface RemoteReference {
  readonly url: string;
  readonly fileName: string;
  /** What is known of it beforehand. */
  readonly sizeBytes?: number | undefined;
  readonly sha256?: string | undefined;
}

/** All files of one model. */
export interface Source {
  /** The model's name, unless the user chooses another. */
  readonly name: string;
  /** Where it comes from, without secrets: for messages and for the manifest. */
  readonly label: string;
  readonly files: readonly RemoteReference[];
}

/** A repository of the hub whose files must be asked for. */
export interface Repository {
  readonly repository: string;
  readonly revision: string;
  readonly quantization: string | undefined;
}

export type Reference =
  | { readonly kind: "source"; readonly source: Source }
  | { readonly kind: "repository"; readonly repository: Repository }
  | { readonly kind: "path"; readonly path: string };

/** Spellings of the hub's name in addresses that people copy. */
const hubHosts = ["huggingface.co", "www.huggingface.co", "hf.co"];

/** Where the hub is reached. Throws a "usage" error if HF_ENDPOINT is no address. */
export function hubEndpoint(env: Readonly<Record<string, string | undefined>>): string {
  const given = env["HF_ENDPOINT"];
  if (!given) return hubUrl;
  const url = URL.parse(given);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === "") {
    return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
  }
  const remedy = "write it as https://hub.example.org, or unset it";
  throw new UserError("usage", "HF_ENDPOINT is no address of a server", remedy);
}

/** Throws a "usage" error for what names nothing that could be fetched. */
export function parseReference(text: string, endpoint: string): Reference {
  const hub = /^hf:(?:\/\/)?(.*)$/s.exec(text)?.[1];
  if (hub !== undefined) return parseHub(hub, endpoint);
  const isBare = hubHosts.some((host) => text.startsWith(`${host}/`));
  if (isBare || /^https?:/i.test(text)) {
    return parseAddress(isBare ? `https://${text}` : text, endpoint);
  }
  const entry = catalogEntry(text);
  if (entry === undefined) return { kind: "path", path: text };
  const { repository, file, name, ...known } = entry;
  const source = hubFile(repository, "main", file, endpoint);
  const files = source.files.map((one) => ({ ...one, ...known }));
  return { kind: "source", source: { ...source, name, files } };
}

/** "owner/repo[@revision][:QUANTIZATION]" or "owner/repo[@revision]/file.gguf". */
function parseHub(text: string, endpoint: string): Reference {
  const [owner, named, ...file] = text.split("/");
  // No name begins with a dot: ".." would lead elsewhere.
  const match = /^(\w[\w.-]*)(?:@(\w[\w.-]*))?(?::([\w.-]+))?$/.exec(named ?? "");
  const isFile = file.length > 0;
  if (match === null || !/^\w[\w.-]*$/.test(owner ?? "") || (isFile && match[3] !== undefined)) {
    const remedy = "write hf:owner/repo/file.gguf, or hf:owner/repo:Q4_K_M";
    throw new UserError("usage", `${text.slice(0, 200)} names no model of the hub`, remedy);
  }
  const [, repo, revision = "main", quantization] = match;
  const repository = `${owner}/${repo}`;
  if (!isFile) return { kind: "repository", repository: { repository, revision, quantization } };
  const source = hubFile(repository, revision, file.join("/"), endpoint);
  return { kind: "source", source };
}

/** An address of a file on any server, or of a file or repository as the hub shows them. */
function parseAddress(text: string, endpoint: string): Reference {
  const url = URL.parse(text);
  if (url === null) {
    throw new UserError("usage", `${text.slice(0, 200)} is no address`, "check how it is spelled");
  }
  const label = url.origin + url.pathname;
  if (url.username !== "" || url.password !== "") {
    const remedy = "leave it out, and put a token into HF_TOKEN or a --token-file";
    throw new UserError("usage", `the address of ${url.host} holds a password`, remedy);
  }
  const [owner, repo, view, revision, ...file] = decoded(url).split("/").slice(1);
  const isHubView = view === "resolve" || view === "blob" || view === "tree";
  const isHub = hubHosts.includes(url.host) || url.origin === new URL(endpoint).origin;
  if (isHub && owner && repo && (view === undefined || isHubView)) {
    const hub = `${owner}/${repo}${revision ? `@${revision}` : ""}`;
    return parseHub([hub, ...file].join("/").replace(/\/+$/, ""), endpoint);
  }
  // Other servers with the hub's layout show a page where it says "blob".
  if (view === "blob" && file.length > 0) {
    url.pathname = url.pathname.replace("/blob/", "/resolve/");
  }
  const files = partsOf(url.pathname).map((pathname) => {
    const address = new URL(url);
    address.pathname = pathname;
    return { url: address.href, fileName: fileNameOf(decoded(address)) };
  });
  return { kind: "source", source: { name: nameOfFile(decoded(url)), label, files } };
}

/** A file of a repository, with the other parts if it is one of several. */
export function hubFile(
  repository: string,
  revision: string,
  file: string,
  endpoint: string,
): Source {
  const at = revision === "main" ? "" : `@${revision}`;
  const folder = `${endpoint}/${repository}/resolve/${revision}`;
  const files = partsOf(file).map((path) => ({
    url: `${folder}/${path.split("/").map(encodeURIComponent).join("/")}`,
    fileName: fileNameOf(path),
  }));
  return { name: nameOfFile(file), label: `hf:${repository}${at}/${file}`, files };
}

function decoded(url: URL): string {
  try {
    return decodeURIComponent(url.pathname);
  } catch {
    return url.pathname;
  }
}

/** The paths of all parts of a split model, in order; of any other only its own. */
export function partsOf(path: string): string[] {
  const match = /-(\d{5})-of-(\d{5})\.gguf$/i.exec(path);
  if (match === null) return [path];
  const [index, count] = [Number(match[1]) - 1, Number(match[2])];
  if (count <= limits.parts) return partPaths(path, { index, count });
  throw new UserError("usage", `${path} claims ${count} parts, more than ${limits.parts}`);
}

/** What the file will be called here: no path, whatever the server's name for it holds. */
function fileNameOf(path: string): string {
  const name = path.split("/").at(-1) ?? "";
  const isSafe = !/[\\:*?"<>|\u0000-\u001f]/.test(name) && !name.startsWith(".");
  if (isSafe && /\.gguf$/i.test(name) && !path.split("/").includes("..")) return name;
  const remedy = "give the address of a .gguf file, as its page links it";
  throw new UserError("usage", `${path.slice(0, 200)} names no .gguf file`, remedy);
}
