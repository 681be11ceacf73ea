/** Where the characters of a text that is being edited stand on the screen. */

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const tab = "    ";

export interface Layout {
  /** What stands on each row, no wider than the screen. */
  readonly rows: readonly string[];
  readonly cursor: { readonly row: number; readonly column: number };
}

/**
 * Breaks a text into rows of at most `columns`; the first line stands behind `prompt`, the others
 * are indented as far. Rows that the screen has no room for are left out, those far from the
 * cursor first.
 */
export function layOut(
  text: string,
  cursor: number,
  prompt: string,
  columns: number,
  height = Infinity,
): Layout {
  const indent = " ".repeat(Bun.stringWidth(prompt));
  const rows = [prompt];
  let column = indent.length;
  let place = { row: 0, column };
  for (const { segment, index } of graphemes.segment(text)) {
    const shown = segment === "\t" ? tab : segment;
    const width = Bun.stringWidth(shown);
    // The last column stays free: some terminals go on to the next row behind it, others do not.
    const isLineEnd = segment === "\n";
    if (!isLineEnd && column + width >= columns && column > 0) {
      rows.push("");
      column = 0;
    }
    if (index === cursor) place = { row: rows.length - 1, column };
    if (isLineEnd) {
      rows.push(indent);
      column = indent.length;
    } else {
      rows[rows.length - 1] += shown;
      column += width;
    }
  }
  if (cursor >= text.length) place = { row: rows.length - 1, column };
  const start = Math.max(0, Math.min(place.row - Math.floor(height / 2), rows.length - height));
  return {
    rows: rows.slice(start, start + height),
    cursor: { row: place.row - start, column: place.column },
  };
}
