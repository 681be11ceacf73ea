/** Each standard stream is a terminal or not, and is treated for itself. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { cleanUp, noDriver, testTimeoutMs, write } from "../helpers/binary.ts";
import { session } from "../helpers/terminal.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const question = "$zinc --prompt 'What is 7 + 5?' --temp 0";

describe.skipIf(noDriver !== undefined)("an answer", () => {
  test.each([
    [true, true, true],
    [true, true, false],
    [true, false, true],
    [true, false, false],
    [false, true, true],
    [false, true, false],
    [false, false, true],
    [false, false, false],
  ])("terminals: stdin %p, stdout %p, stderr %p", async (stdin, stdout, stderr) => {
    const [out, err] = [write("out", ""), write("err", "")];
    const redirections = [
      stdin ? "" : "</dev/null",
      stdout ? "" : `>${out}`,
      stderr ? "" : `2>${err}`,
    ];
    const { screen, code } = await session([question, ...redirections].join(" "));
    expect(code).toBe(0);
    const [answer, notes] = [
      stdout ? screen : readFileSync(out, "utf8"),
      stderr ? screen : readFileSync(err, "utf8"),
    ];
    expect(answer).toContain("12");
    expect(notes).toContain("tok/s");
    // A bar and colour only where they can be seen, and never in the answer.
    expect(/\u001b\[K/.test(notes)).toBe(stderr);
    expect(notes.includes("\u001b[33mzinc: warning: \u001b[0m")).toBe(stderr);
    if (!stdout) expect(answer).not.toMatch(/[\u001b\r]/);
    if (!stderr) expect(notes).not.toMatch(/[\u001b\r]/);
    if (!stderr && stdout) expect(answer).not.toContain("\u001b");
  });

  test("NO_COLOR takes the colour and leaves the bar, TERM=dumb takes both", async () => {
    const plain = await session(question, { NO_COLOR: "1" });
    expect(plain.screen).not.toContain("\u001b[33m");
    expect(plain.screen).toContain("\u001b[K");
    expect((await session(question, { TERM: "dumb" })).screen).not.toContain("\u001b");
  });

  test("--quiet takes all but the answer", async () => {
    const { screen } = await session(`${question} --quiet`);
    expect(screen).toMatch(/^[^\n\u001b]*12[^\n\u001b]*\n$/);
  });

  test("Ctrl+C ends it and leaves the terminal on a line of its own", async () => {
    const line = "exec $zinc --prompt 'Tell me a story about a fox' --ignore-eos -c 2048";
    const keys = { after: /in [\d.]+ s\r\n\w+ /, keys: "\u0003" };
    const { screen, code } = await session(line, {}, [keys]);
    expect(code).toBe(130);
    expect(screen).toMatch(/\n\d+ prompt tokens at .+ tok\/s.*\n$/);
  });
});

describe("a terminal as stdin", () => {
  test.each([
    ["$zinc run", /the prompt is empty; say something/],
    [
      "$zinc tokenize",
      /nothing is piped in; pipe a text in, as in printf "Hello" \| zinc tokenize/,
    ],
    ["$zinc template", /nothing is piped in; pipe in \{"messages": /],
  ])("is not waited for by %s", async (line, expected) => {
    const { screen, code } = await session(line);
    expect(code).toBe(2);
    expect(screen).toMatch(expected);
    expect(screen).toStartWith("\u001b[31mzinc: \u001b[0m");
  });
});

test("help is coloured on a terminal and plain in a file", async () => {
  const path = write("help", "");
  expect((await session("$zinc run --help")).screen).toContain("\u001b[36m");
  await session(`$zinc run --help >${path}`);
  expect(readFileSync(path, "utf8")).not.toContain("\u001b");
});
