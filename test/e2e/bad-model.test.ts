/** Model files that cannot be run: exit code 3, or 5 where only the memory is too small. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { blockFormats } from "../../src/tensor/dtype.ts";
import {
  cleanUp,
  files,
  folder,
  json,
  noDriver,
  refusal,
  testTimeoutMs,
  write,
  zinc,
} from "../helpers/binary.ts";
import {
  forgeGguf,
  numbers,
  scalar,
  text,
  texts,
  type ForgedTensor,
} from "../helpers/gguf-forge.ts";
import { tinyLlama, type TinyOptions } from "../helpers/tiny-llama.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const none = { "tokenizer.ggml.model": text("none") };

function tiny({ pairs, ...options }: TinyOptions = {}): Uint8Array<ArrayBuffer> {
  return tinyLlama({ ...options, pairs: { ...none, ...pairs } }).bytes;
}

/** The error for a file, without the path that it begins with. */
async function refusalOf(content: string | Uint8Array, code = 3): Promise<string> {
  const path = write("model.gguf", content);
  const line = await refusal(code, ["-m", path, "--tokens", "1", "-n", "1"]);
  expect(line).toContain(path);
  return line.replace(path, "FILE");
}

describe("a path", () => {
  test.each([
    ["/none/model.gguf", "cannot open /none/model.gguf: no such file; check the path"],
    ["/etc/passwd/model.gguf", "cannot open /etc/passwd/model.gguf: no such file; check the path"],
    ["/dev/null", "/dev/null is not a regular file"],
    [folder, `${folder} is a directory; name a .gguf file`],
  ])("%p", async (path, expected) => {
    expect(await refusal(3, ["-m", path, "--prompt", "Hi"])).toBe(expected);
    expect(await refusal(3, ["--prompt", "Hi"], { env: { ZINC_MODEL: path } })).toBe(expected);
  });

  test("that holds models is told with the name of one", async () => {
    const place = join(files, "models");
    mkdirSync(place, { recursive: true });
    await Bun.write(join(place, "b.gguf"), "");
    await Bun.write(join(place, "a.gguf"), "");
    expect(await refusal(3, ["-m", place, "--prompt", "Hi"])).toBe(
      `${place} is a directory; name a file in it, such as ${place}/a.gguf`,
    );
  });

  test.skipIf(process.getuid?.() === 0)("that must not be read", async () => {
    const path = write("secret.gguf", tiny());
    chmodSync(path, 0o000);
    expect(await refusal(3, ["-m", path, "--prompt", "Hi"])).toBe(
      `cannot open ${path}: permission denied; make it readable for this user`,
    );
  });
});

describe("a file that is no model", () => {
  test.each([
    ["empty", ""],
    ["a web page", "<!DOCTYPE html><html><body>Not found</body></html>"],
    ["a pointer of Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"],
    ["a zip archive", "PK\u0003\u0004\u0014\u0000"],
    ["a text", "hello\n"],
    ["a damaged header", "GGUF"],
  ])("%s", async (_name, content) => {
    expect(await refusalOf(content)).toStartWith("FILE");
  });
});

test("a truncated file is refused wherever it was cut", async () => {
  const bytes = tiny({ layers: 1 });
  for (const share of [0.02, 0.3, 0.7, 0.999]) {
    const line = await refusalOf(bytes.slice(0, Math.floor(bytes.length * share)));
    expect(line).toMatch(/^FILE: truncated: needs (at least )?\d+ more bytes? \(it has \d+\); /);
  }
});

describe("a model that zinc cannot run", () => {
  test("an unknown architecture is named, with those that are known", async () => {
    const pairs = { "general.architecture": text("starfish") };
    expect(await refusalOf(tiny({ pairs }))).toMatch(
      /^FILE: architecture "starfish" is not supported; zinc runs .*llama/,
    );
  });

  test("no architecture at all", async () => {
    const pairs = { "general.architecture": undefined };
    expect(await refusalOf(tiny({ pairs }))).toBe(
      "FILE: metadata general.architecture is missing; the file is no model that zinc can run",
    );
  });

  test.each([
    ["a type without kernels", 16, "IQ2_XXS"],
    ["a type of the future", 199, "199"],
  ])("%s is named with its tensor", async (_name, type, shown) => {
    const edit = (tensors: readonly ForgedTensor[]) =>
      tensors.map((tensor) =>
        tensor.name === "blk.0.ffn_up.weight"
          ? { ...tensor, dims: [256, 96], type, bytes: new Uint8Array(96 * 66) }
          : tensor,
      );
    const line = await refusalOf(tiny({ width: 256, edit }));
    expect(line).toContain("blk.0.ffn_up.weight");
    expect(line).toContain(shown);
  });

  test.each([
    ["bert", /^FILE: tokenizer.ggml.model bert is not supported; supported are gpt2, /],
    [undefined, /^FILE: metadata tokenizer.ggml.model is missing: .+; take another file/],
  ])("tokenizer %p", async (name, expected) => {
    const pairs = { "tokenizer.ggml.model": name === undefined ? undefined : text(name) };
    expect(await refusalOf(tiny({ pairs }))).toMatch(expected);
  });

  test("missing tensors are counted, and five of them named", async () => {
    const edit = (tensors: readonly ForgedTensor[]) =>
      tensors.filter(({ name }) => !String(name).startsWith("blk.1."));
    expect(await refusalOf(tiny({ edit }))).toMatch(
      /^FILE: (?:tensor blk\.1\.\w+\.weight is missing(?:, |(?= and))){5} and 4 more; the file is /,
    );
  });

  test("a tensor of another shape is named with both", async () => {
    const edit = (tensors: readonly ForgedTensor[]) =>
      tensors.map((tensor) =>
        tensor.name === "output_norm.weight"
          ? { ...tensor, dims: [63], bytes: new Uint8Array(63 * 4) }
          : tensor,
      );
    expect(await refusalOf(tiny({ edit }))).toStartWith(
      "FILE: tensor output_norm.weight is [63] and should be [64]; ",
    );
  });
});

describe("a zero where there must be something", () => {
  test.each([
    "context_length",
    "block_count",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
  ])("llama.%s", async (key) => {
    const pairs = { [`llama.${key}`]: scalar("u32", 0) };
    expect(await refusalOf(tiny({ pairs }))).toMatch(
      new RegExp(`^FILE: metadata llama\\.${key.replaceAll(".", "\\.")} is 0 and must be `),
    );
  });

  test.each(["rope.freq_base", "attention.layer_norm_rms_epsilon"])("llama.%s", async (key) => {
    const pairs = { [`llama.${key}`]: scalar("f32", 0) };
    expect(await refusalOf(tiny({ pairs }))).toContain(`metadata llama.${key} is 0`);
  });

  test("an empty vocabulary", async () => {
    const pairs = {
      "tokenizer.ggml.model": text("gpt2"),
      "tokenizer.ggml.tokens": texts([]),
      "tokenizer.ggml.merges": texts([]),
    };
    expect(await refusalOf(tiny({ pairs }))).toStartWith("FILE: ");
  });

  test("a dimension of a tensor", async () => {
    const edit = (tensors: readonly ForgedTensor[]) =>
      tensors.map((tensor) =>
        tensor.name === "output_norm.weight"
          ? { ...tensor, dims: [0], bytes: new Uint8Array() }
          : tensor,
      );
    expect(await refusalOf(tiny({ edit }))).toContain("output_norm.weight");
  });
});

describe.skipIf(noDriver !== undefined)("a model that does not fit", () => {
  /** A file that claims more than it has on the disk: zeros that no block holds. */
  function sparse(bytes: Uint8Array, claimedBytes: number): string {
    const path = write("huge.gguf", bytes);
    truncateSync(path, bytes.length + claimedBytes);
    return path;
  }

  test("weights beyond the memory", async () => {
    const rows = 2 ** 20;
    const byteSize = 64 * rows * blockFormats.F32.blockBytes;
    const isHuge = ({ name }: ForgedTensor) => /\.ffn_(gate|up|down)\./.test(String(name));
    let end = 2 ** 28;
    const claim = (tensor: ForgedTensor): ForgedTensor => {
      const dims = tensor.dims[0] === 64 ? [64, rows] : [rows, 64];
      const offset = end;
      end += byteSize;
      return { ...tensor, dims, bytes: new Uint8Array(), offset };
    };
    const bytes = tiny({
      layers: 400,
      feedForward: 8,
      pairs: { "llama.feed_forward_length": scalar("u32", rows) },
      edit: (all) => [...all.filter((tensor) => !isHuge(tensor)), ...all.filter(isHuge).map(claim)],
    });
    const path = sparse(bytes, end);
    const line = await refusal(5, ["-m", path, "--tokens", "1", "-n", "1"]);
    expect(line).toMatch(/^tiny needs \d+ GB \(\d+ GB of weights, .+ free; take a smaller model /);
    const report = await zinc(["--check", "-m", path, "--json"]);
    expect(report.code).toBe(1);
    expect(JSON.parse(report.out)).toMatchObject({ ok: false, model: null });
  });

  test("a tensor larger than the device's largest buffer", async () => {
    const rows = 2 ** 31;
    const edit = ([table, ...others]: readonly ForgedTensor[]) => [
      ...others,
      { ...(table as ForgedTensor), dims: [64, rows], bytes: new Uint8Array() },
    ];
    const path = sparse(tiny({ tied: true, edit }), 64 * rows * blockFormats.F32.blockBytes);
    expect(await refusal(5, ["-m", path, "--tokens", "1", "-n", "1"])).toMatch(
      /^token_embd\.weight needs 550 GB in one piece and .+ allows .+; take a smaller quantiz/,
    );
  });

  test("a context beyond the memory, with the longest that fits as remedy", async () => {
    const path = write("long.gguf", tiny({ contextLength: 2 ** 30 }));
    const args = ["-m", path, "--tokens", "1", "-n", "1", "-c", String(2 ** 30)];
    const line = await refusal(5, args);
    expect(line).toMatch(/^tiny needs 27\d GB \(.+ for 1073741824 tokens\) and .+ has .+ free; /);
    expect(line).toMatch(/; shorten the context with -c \d+$/);
  });
});

describe("a vocabulary without a model", () => {
  const pairs = {
    "general.architecture": text("starfish"),
    "tokenizer.ggml.model": text("llama"),
    "tokenizer.ggml.tokens": texts(["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab"]),
    "tokenizer.ggml.scores": numbers("f32", [0, 0, 0, -1, -2, -3, -4, -5]),
    "tokenizer.chat_template": text("{{ bos_token }}{{ messages[0].content }}"),
  };
  const vocabulary = forgeGguf({ pairs: Object.entries(pairs) });

  test("can be tokenized with and renders its template", async () => {
    const path = write("vocabulary.gguf", vocabulary);
    expect(await json<number[]>(["tokenize", "-m", path], { stdin: "ab" })).toEqual([7]);
    const stdin = '{"messages": [{"role": "user", "content": "Hi"}]}';
    expect(await json<string>(["template", "-m", path], { stdin })).toBe("<s>Hi");
    expect(await json<object>(["model", "info", path, "--json"])).toMatchObject({
      architecture: "starfish",
      runs: false,
      vocabulary: 8,
    });
  });

  test("cannot be run", async () => {
    expect(await refusalOf(vocabulary)).toStartWith('FILE: architecture "starfish"');
  });
});

describe("model info", () => {
  test("looks into a file whose tokenizer zinc lacks", async () => {
    const pairs = { "tokenizer.ggml.model": text("bert") };
    const path = write("bert.gguf", tiny({ pairs }));
    const { code, out, err } = await zinc(["model", "info", path, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ tokenizer: "bert", vocabulary: null, layers: 2 });
    expect(err).toMatch(/^zinc: warning: .+ tokenizer\.ggml\.model bert is not supported; .+\n$/);
  });

  test("tells what the file holds, and lists its tensors", async () => {
    const path = write("tiny.gguf", tiny());
    const args = ["model", "info", path, "--json", "--tensors"];
    const info = await json<{ tensors: { name: string }[] }>(args);
    expect(info).toMatchObject({
      file: path,
      parts: 1,
      name: "tiny",
      architecture: "llama",
      runs: true,
      context: 256,
      layers: 2,
      tokenizer: "none",
    });
    expect(info.tensors.map(({ name }) => name)).toContain("blk.1.ffn_down.weight");
  });
});
