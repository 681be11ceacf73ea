/** Errors for people: one line, whatever was quoted. */
import { expect, test } from "bun:test";
import { exitCodes, invariant, InvariantError, oneLine, UserError } from "../src/errors.ts";

test("the text is the message and the remedy", () => {
  expect(new UserError("usage", "a is b", "write c").text).toBe("a is b; write c");
  expect(new UserError("usage", "a is b").text).toBe("a is b");
});

test("line breaks and control characters are spelled out, in message and remedy", () => {
  const { text } = new UserError("model", "a\nb\r\u001b[31m", "c\u2028d\u0085");
  expect(text).toBe("a\\nb\\x0d\\x1b[31m; c\\x2028d\\x85");
});

test("other characters stay as they are", () => {
  expect(oneLine('“ü” 😀 "a\\b"')).toBe('“ü” 😀 "a\\b"');
});

test("each kind has the exit code that scripts rely on", () => {
  expect(exitCodes).toEqual({ failed: 1, usage: 2, model: 3, device: 4, memory: 5 });
});

test("a broken promise of ours is another error", () => {
  expect(() => invariant(false, "half of it")).toThrow(InvariantError);
  expect(() => invariant(true, "all of it")).not.toThrow();
});
