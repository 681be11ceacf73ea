/** Files that the user takes and gives. */

export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  // The browser has begun with it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Empty if the user chooses none; all kinds if `accept` is empty. */
export function chooseFiles(accept: string, multiple: boolean): Promise<File[]> {
  return new Promise((resolve) => {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = accept;
    input.multiple = multiple;
    input.addEventListener("change", () => resolve([...(input.files ?? [])]));
    input.addEventListener("cancel", () => resolve([]));
    input.click();
  });
}

/** Pages without TLS on another machine have no clipboard interface: there the old way is left. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

/** Larger ones are no part of a conversation. */
const longestAttachment = 1_000_000;

/**
 * A text file as a part of a message: its name, and its text between fences that no fence inside of
 * it ends. Throws an Error with a sentence for the user for files that are too large or no text.
 */
export async function readAttachment(file: File): Promise<string> {
  if (file.size > longestAttachment) throw new Error(`“${file.name}” is larger than 1 MB.`);
  const text = decodeText(await file.arrayBuffer());
  if (text === undefined) throw new Error(`“${file.name}” is no text.`);
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([fence]) => fence.length));
  const fence = "`".repeat(longest + 1);
  const kind = /\.(\w+)$/.exec(file.name)?.[1] ?? "";
  return `${file.name}:\n${fence}${kind}\n${text.replace(/\n$/, "")}\n${fence}\n`;
}

function decodeText(bytes: ArrayBuffer): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** "zinc 2026-08-21.json" */
export function archiveName(title: string, now: Date): string {
  const safe = title.replace(/[^\p{L}\p{N} _-]+/gu, "").trim();
  return `${safe === "" ? "zinc" : safe} ${now.toISOString().slice(0, 10)}.json`;
}
