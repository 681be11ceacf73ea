/** Files that the user takes and gives. */

export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  // The browser has begun with it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Undefined if the user chooses none. */
export function chooseFile(accept: string): Promise<File | undefined> {
  return new Promise((resolve) => {
    const input = document.createElement("input");
    input.type = "file";
    input.accept = accept;
    input.addEventListener("change", () => resolve(input.files?.[0]));
    input.addEventListener("cancel", () => resolve(undefined));
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

/** "zinc 2026-08-21.json" */
export function archiveName(title: string, now: Date): string {
  const safe = title.replace(/[^\p{L}\p{N} _-]+/gu, "").trim();
  return `${safe === "" ? "zinc" : safe} ${now.toISOString().slice(0, 10)}.json`;
}
