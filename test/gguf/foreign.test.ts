/** Files that are not GGUF: the message says what each looks like and what to do. */
import { describe, expect, test } from "bun:test";
import { readHeader } from "../../src/gguf/gguf.ts";
import { MemorySource } from "../../src/gguf/source.ts";
import { refusalOf } from "../helpers/bad-model.ts";
import { forgeGguf, text } from "../helpers/gguf-forge.ts";

/** The bytes of text whose characters are all below 256. */
const bytes = (latin1: string) => Uint8Array.from(latin1, (c) => c.charCodeAt(0));

const pytorchZip = `PK\x03\x04\x00\x00\x08\x08\x00\x00${"\0".repeat(20)}archive/data.pklFB`;
const safetensors = `\x58\x02\0\0\0\0\0\0{"__metadata__":{"format":"pt"},"a":{"dtype":"F32"}}`;
const lfsPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4920739232\n";

const cases: readonly (readonly [name: string, content: string, says: string])[] = [
  ["an empty file", "", "bad.gguf is empty; download it again"],
  ["a Git LFS pointer", lfsPointer, "looks like a Git LFS pointer; run `git lfs pull`"],
  ["an HTML page", "<!DOCTYPE html><html><head>", "a web page; the download went wrong"],
  ["an HTML page after blanks", '\n  <html lang="en">', "a web page"],
  ["an HTML page with a byte order mark", "\xef\xbb\xbf<!doctype HTML>", "a web page"],
  ["an XML error", '<?xml version="1.0"?><Error><Code>AccessDenied</Code>', "an XML reply"],
  ["safetensors", safetensors, "a safetensors file; take the GGUF file"],
  ["a PyTorch zip", pytorchZip, "a PyTorch checkpoint"],
  ["another zip", "PK\x03\x04\x14\0\0\0model.gguf", "a zip archive; unpack it first"],
  ["a pickle", "\x80\x02}q\x00(X\x05\0\0\0model", "a pickled PyTorch checkpoint"],
  ["GGML", "lmgg\x00\x7d\0\0", "an old GGML model; this format predates GGUF"],
  ["GGMF", "fmgg\x01\0\0\0", "an old GGML model"],
  ["GGJT", "tjgg\x03\0\0\0", "an old GGML model"],
  ["GGLA", "algg\x01\0\0\0", "an old GGML adapter"],
  ["swapped magic", "FUGG\0\0\0\x03", "GGUF with its bytes swapped"],
  ["gzip", "\x1f\x8b\x08\0\0\0\0\0", "gzip data; unpack it first"],
  ["zstd", "\x28\xb5\x2f\xfd\x04\0\0\0", "zstd data"],
  ["xz", "\xfd7zXZ\0\0\x04", "xz data"],
  ["bzip2", "BZh91AY&SY", "bzip2 data"],
  ["7z", "7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive"],
  ["rar", "Rar!\x1a\x07\x01\0", "a rar archive"],
  ["tar", `model/${"\0".repeat(251)}ustar\0`, "a tar archive"],
  ["HDF5", "\x89HDF\r\n\x1a\n\0", "an HDF5 file"],
  ["NumPy", "\x93NUMPY\x01\0", "a NumPy array"],
  ["TFLite", "\x1c\0\0\0TFL3", "a TensorFlow Lite model"],
  ["ONNX", "\x08\x08\x12\x07pytorch\x1a\x052.1.0", "an ONNX model"],
  ["a program", "\x7fELF\x02\x01\x01", "a program"],
  ["an image", "\x89PNG\r\n\x1a\n", "an image"],
  ["a PDF", "%PDF-1.7", "a PDF document"],
  ["JSON", '{"error":"Repository not found"}', "JSON text"],
  ["text", "# Model card\n\nA model.", "a text file"],
  ["zeros", "\0".repeat(4096), "an unfinished download (it starts with zeros)"],
  [
    "anything else",
    "\x01\x02\xff\xfe\0\0",
    "bad.gguf is not GGUF: it starts with 01 02 ff fe; name a .gguf file",
  ],
  ["one byte", "\x01", "it starts with 01"],
  ["the first two bytes of a GGUF file", "GG", "truncated: needs at least 22 more bytes"],
  ["the magic alone", "GGUF", "truncated: needs at least 4 more bytes"],
];

describe("is refused:", () => {
  test.each(cases)("%s", (_, content, says) => {
    const source = new MemorySource("bad.gguf", bytes(content));
    expect(refusalOf(() => readHeader(source), "bad.gguf")).toContain(says);
  });
});

test("only the magic decides: metadata that mentions other formats is no reason to refuse", () => {
  const file = forgeGguf({ pairs: [["note", text("<!DOCTYPE html> version https://git-lfs")]] });
  expect(readHeader(new MemorySource("m.gguf", file)).metadata.has("note")).toBe(true);
});
