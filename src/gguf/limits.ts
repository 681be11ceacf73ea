/**
 * What a GGUF header may claim at most. A file is untrusted: these bound time and memory before
 * anything is allocated. They are far above every model in use, so reaching one means a damaged or
 * hostile file.
 */
export const limits = {
  /** Key-value pairs. Models have 20 to 80; the widest merges list some hundred sources. */
  pairs: 65_536,
  /** Tensors. A mixture of 256 experts in 61 layers, each expert apart, has some 50,000. */
  tensors: 131_072,
  /** Elements of one array. The largest vocabularies have 300,000 tokens and 600,000 merges. */
  arrayElements: 2 ** 24,
  /** One string. Some files carry a whole tokenizer.json, tens of MB; templates take 100 kB. */
  stringBytes: 2 ** 26,
  /** A key: the specification's own limit. */
  keyBytes: 65_535,
  /** A tensor name. The specification says 64; builds for image models write up to 127. */
  nameBytes: 255,
  /** Dimensions of a tensor: as GGML. */
  dims: 4,
  /** The whole header, which is kept in memory while it is read. Large ones take 30 MB. */
  headerBytes: 2 ** 29,
  /** `general.alignment`. 32 is usual, some use a page. */
  alignmentBytes: 2 ** 20,
  /** Parts of a split model; each keeps a file open, and systems allow 1024 of them by default. */
  parts: 512,
} as const satisfies Record<string, number>;
