/**
 * The Khronos validation layer, on when ZINC_VALIDATE=1. Its messages go to a log file through the
 * layer's own settings, because a callback into JavaScript from a driver thread is not safe (see
 * Bun's `JSCallback`).
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dlopen } from "bun:ffi";

export const validationLayer = "VK_LAYER_KHRONOS_validation";

export const validationRequested = process.env["ZINC_VALIDATE"] === "1";

let folder: string | undefined;

/** Points the layer at a log file of this process. To be called before the instance is created. */
export function captureValidationMessages(): void {
  if (folder !== undefined || process.platform !== "linux") return;
  folder = mkdtempSync(join(tmpdir(), "zinc-validation-"));
  const settings = join(folder, "vk_layer_settings.txt");
  writeFileSync(
    settings,
    [
      "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG",
      "khronos_validation.report_flags = error,warn",
      `khronos_validation.log_filename = ${join(folder, "messages.log")}`,
      "",
    ].join("\n"),
  );
  // The layer reads the C environment, which assignments to process.env do not reach.
  const libc = dlopen("libc.so.6", {
    setenv: { args: ["cstring", "cstring", "i32"], returns: "i32" },
  });
  libc.symbols.setenv("VK_LAYER_SETTINGS_PATH", settings, 1);
  process.on("exit", removeFolder);
}

/** Everything the layer has said since the last call. */
export function takeValidationMessages(): string {
  if (folder === undefined) return "";
  const log = join(folder, "messages.log");
  if (!existsSync(log)) return "";
  const text = readFileSync(log, "utf8");
  const fresh = text.slice(taken);
  taken = text.length;
  return fresh.trim();
}

let taken = 0;

function removeFolder(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}
