/** `zinc --version`: what this is made of. */
import { version } from "../../package.json";
import { compilerVersion } from "../kernels/shaders.ts";

export { version };

export function versionText(): string {
  const build = process.env["ZINC_BUILD"] ?? "from source";
  return `zinc ${version} (${build}), Bun ${Bun.version}, shaders by ${compilerVersion}\n`;
}
