/** A string that remembers of each character who wrote it: the template or the user. */

import { runtimeError } from "../template-error.ts";
import { checkLength, reserve } from "./budget.ts";
import * as jinja from "./package.ts";

/** A part of a prompt. */
export interface Segment {
  readonly text: string;
  /** Written by the template itself, so special tokens may be recognised in it. */
  readonly special: boolean;
}

export class Text extends jinja.StringValue {
  /** As long as `value`: "t" for what the template wrote, "u" for what the user wrote. */
  readonly mask: string;

  constructor(value: string, mask: string) {
    reserve(value.length, 1);
    super(value);
    this.mask = mask;
  }

  static template(value: string): Text {
    return new Text(value, "t".repeat(value.length));
  }

  static user(value: string): Text {
    return new Text(value, "u".repeat(value.length));
  }

  /** The value as text. A string that the package made by itself counts as the user's. */
  static from(value: jinja.Value | undefined): Text {
    if (value instanceof Text) return value;
    if (value instanceof jinja.StringValue) return Text.user(value.value);
    throw runtimeError(`expected a string, got: ${value?.type ?? "nothing"}`);
  }

  static join(parts: readonly Text[], separator: Text = Text.template("")): Text {
    const length = parts.reduce((sum, { value }) => sum + value.length, 0);
    checkLength(length + separator.value.length * parts.length);
    let [value, mask] = ["", ""];
    for (const [i, part] of parts.entries()) {
      value += (i > 0 ? separator.value : "") + part.value;
      mask += (i > 0 ? separator.mask : "") + part.mask;
    }
    return new Text(value, mask);
  }

  slice(start: number, end?: number): Text {
    return new Text(this.value.slice(start, end), this.mask.slice(start, end));
  }

  /** Another value of the same origin, as far as characters correspond. */
  changed(value: string): Text {
    if (value.length === this.value.length) return new Text(value, this.mask);
    return this.mask.includes("u") ? Text.user(value) : Text.template(value);
  }

  /** Replaces each match, one character long, by some of the same origin. */
  escaped(pattern: RegExp, escape: (character: string) => string): Text {
    const parts: Text[] = [];
    let end = 0;
    for (const { 0: character, index } of this.value.matchAll(pattern)) {
      const replaced = escape(character);
      const mask = this.mask.charAt(index).repeat(replaced.length);
      parts.push(this.slice(end, index), new Text(replaced, mask));
      end = index + 1;
    }
    return Text.join([...parts, this.slice(end)]);
  }

  /** The code points, which are Python's characters. */
  characters(): Text[] {
    let end = 0;
    return Array.from(this.value, (character) => this.slice(end, (end += character.length)));
  }

  /** How many code points there are. */
  get length(): number {
    return this.value.replace(/[\ud800-\udbff](?=[\udc00-\udfff])/g, "").length;
  }

  /** Cuts at a separator, at most `limit` times, from the left end or the right one. */
  split(separator: string, limit = Number.POSITIVE_INFINITY, isFromRight = false): Text[] {
    if (separator === "") throw runtimeError("empty separator");
    const parts: Text[] = [];
    let [start, end] = [0, this.value.length];
    while (parts.length < limit && end - start >= separator.length) {
      const at = isFromRight
        ? this.value.lastIndexOf(separator, end - separator.length)
        : this.value.indexOf(separator, start);
      if (at < 0) break;
      parts.push(isFromRight ? this.slice(at + separator.length, end) : this.slice(start, at));
      if (isFromRight) end = at;
      else start = at + separator.length;
    }
    parts.push(this.slice(start, end));
    return isFromRight ? parts.reverse() : parts;
  }

  /** Without the given characters, or white space, at its ends. */
  strip(characters: string | undefined, sides: "both" | "left" | "right"): Text {
    const strips = (unit = "") =>
      characters === undefined ? unit.trim() === "" : characters.includes(unit);
    let [start, end] = [0, this.value.length];
    while (sides !== "right" && start < end && strips(this.value[start])) start++;
    while (sides !== "left" && start < end && strips(this.value[end - 1])) end--;
    return this.slice(start, end);
  }

  /** Cut where the origin changes. */
  segments(): Segment[] {
    return Array.from(this.mask.matchAll(/t+|u+/g), ({ 0: run, index }) => ({
      text: this.value.slice(index, index + run.length),
      special: run.startsWith("t"),
    }));
  }
}
