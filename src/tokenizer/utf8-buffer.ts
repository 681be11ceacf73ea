/** Text as UTF-8 in memory that is used again and again. */
const encoder = new TextEncoder();

/** The memory of a larger text is not kept for the next one. */
const keptMax = 1 << 20;

export class Utf8Buffer {
  bytes = new Uint8Array(1024);
  length = 0;

  /** Replaces the content. A lone surrogate becomes U+FFFD. */
  write(text: string): void {
    // UTF-16 to UTF-8 grows at most threefold.
    const needed = text.length * 3;
    if (needed > this.bytes.length || this.bytes.length > keptMax) {
      this.bytes = new Uint8Array(Math.max(needed, 1024));
    }
    const { bytes } = this;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit > 0x7f) {
        this.length = encoder.encodeInto(text, bytes).written;
        return;
      }
      bytes[i] = unit;
    }
    this.length = text.length;
  }

  /** The end of the character that begins at `start`. */
  characterEnd(start: number): number {
    const lead = this.bytes[start] as number;
    return start + (lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);
  }
}
