/** Files that are not GGUF: says what one looks like and what to do about it. */
import { UserError } from "../errors.ts";
import { isHandSplit, joinRemedy } from "./bad-file.ts";
import type { ByteSource } from "./source.ts";

/** A kind of file that people hand us in place of a model. */
interface Foreign {
  readonly looksLike: string;
  readonly remedy: string;
  /** `head` holds the first bytes, one character each. */
  readonly matches: (head: string) => boolean;
}

/** Enough for the magic of a tar archive (at 257) and the names at the start of a zip. */
const headBytes = 1024;

const otherFormat =
  "take the GGUF file of this model, or convert it with llama.cpp's convert_hf_to_gguf.py";
const oldFormat = "this format predates GGUF: take a newer file of the model";
const unpack = "unpack it first";
const webPage = "the download went wrong: take the file's direct link and download it again";

const starts =
  (...magics: string[]) =>
  (head: string) =>
    magics.some((m) => head.startsWith(m));
const isText = (head: string) => /^[\t\n\r\x20-\x7e\x80-\xff]+$/.test(head);

/** The first that matches counts. */
const foreigns: readonly Foreign[] = [
  {
    looksLike: "a Git LFS pointer",
    remedy: "run `git lfs pull`, or download the file itself",
    matches: starts("version https://git-lfs.github.com"),
  },
  {
    looksLike: "a web page",
    remedy: webPage,
    matches: (head) => /^(\xef\xbb\xbf)?\s*<(!doctype html|html|head|body|!--)/i.test(head),
  },
  {
    looksLike: "an XML reply",
    remedy: webPage,
    matches: (head) => /^(\xef\xbb\xbf)?\s*<(\?xml|error)/i.test(head),
  },
  {
    looksLike: "a safetensors file",
    remedy: otherFormat,
    matches: (head) => /^[\s\S]{5}\0\0\0\{/.test(head),
  },
  {
    looksLike: "a PyTorch checkpoint",
    remedy: otherFormat,
    matches: (head) => head.startsWith("PK\x03\x04") && head.includes("data.pkl"),
  },
  { looksLike: "a zip archive", remedy: unpack, matches: starts("PK\x03\x04", "PK\x05\x06") },
  {
    looksLike: "a pickled PyTorch checkpoint",
    remedy: otherFormat,
    matches: (head) => /^\x80[\x02-\x05][\s\S]/.test(head),
  },
  { looksLike: "an old GGML model", remedy: oldFormat, matches: starts("lmgg", "fmgg", "tjgg") },
  { looksLike: "an old GGML adapter", remedy: oldFormat, matches: starts("algg") },
  {
    looksLike: "GGUF with its bytes swapped",
    remedy: "take another copy of the file",
    matches: starts("FUGG"),
  },
  { looksLike: "gzip data", remedy: unpack, matches: starts("\x1f\x8b") },
  { looksLike: "zstd data", remedy: unpack, matches: starts("\x28\xb5\x2f\xfd") },
  { looksLike: "xz data", remedy: unpack, matches: starts("\xfd7zXZ\0") },
  { looksLike: "bzip2 data", remedy: unpack, matches: starts("BZh") },
  { looksLike: "a 7z archive", remedy: unpack, matches: starts("7z\xbc\xaf\x27\x1c") },
  { looksLike: "a rar archive", remedy: unpack, matches: starts("Rar!\x1a\x07") },
  {
    looksLike: "a tar archive",
    remedy: unpack,
    matches: (head) => head.slice(257, 262) === "ustar",
  },
  { looksLike: "an HDF5 file", remedy: otherFormat, matches: starts("\x89HDF\r\n\x1a\n") },
  { looksLike: "a NumPy array", remedy: otherFormat, matches: starts("\x93NUMPY") },
  {
    looksLike: "a TensorFlow Lite model",
    remedy: otherFormat,
    matches: (head) => head.slice(4, 8) === "TFL3",
  },
  // Protobuf: field 1 (version) as a small integer, then field 2 (the producer's name) as a string.
  {
    looksLike: "an ONNX model",
    remedy: otherFormat,
    matches: (head) => /^\x08[\x01-\x20]\x12[\x01-\x40][\x20-\x7e]/.test(head),
  },
  {
    looksLike: "a program",
    remedy: "name a model file",
    matches: starts("\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "#!"),
  },
  {
    looksLike: "an image",
    remedy: "name a model file",
    matches: starts("\x89PNG", "\xff\xd8\xff", "GIF8"),
  },
  { looksLike: "a PDF document", remedy: "name a model file", matches: starts("%PDF") },
  {
    looksLike: "JSON text",
    remedy: "name the .gguf file; JSON may also be the reply to a failed download",
    matches: (head) => /^(\xef\xbb\xbf)?\s*[[{]/.test(head) && isText(head),
  },
  {
    looksLike: "an unfinished download (it starts with zeros)",
    remedy: "download it again",
    matches: (head) => /^\0+$/.test(head),
  },
  { looksLike: "a text file", remedy: "name a model file", matches: isText },
];

/** The error for a source that does not start with "GGUF". */
export function explainForeign(source: ByteSource): UserError {
  const { name, sizeBytes } = source;
  if (sizeBytes === 0) return new UserError("model", `${name} is empty`, "download it again");
  const bytes = new Uint8Array(Math.min(headBytes, sizeBytes));
  source.readIntoSync(bytes, 0);
  const head = String.fromCharCode(...bytes);
  const found = foreigns.find(({ matches }) => matches(head));
  if (found !== undefined) {
    const message = `${name} is not GGUF: it looks like ${found.looksLike}`;
    return new UserError("model", message, found.remedy);
  }
  const magic = Array.from(bytes.subarray(0, 4), (b) => b.toString(16).padStart(2, "0")).join(" ");
  const remedy = isHandSplit(name) ? joinRemedy : "name a .gguf file";
  return new UserError("model", `${name} is not GGUF: it starts with ${magic}`, remedy);
}
