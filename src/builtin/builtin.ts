/** The small model inside the executable, so that zinc answers before anything is downloaded. */
import { readFileSync } from "node:fs";
import { openGgufBytes, type GgufFile } from "../gguf/file.ts";

const builtinName = "spark (built in)";

export async function openBuiltin(): Promise<GgufFile> {
  const { default: path } = await import("./spark.gguf", { with: { type: "file" } });
  return openGgufBytes(builtinName, readFileSync(path));
}
