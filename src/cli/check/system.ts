/**
 * What lies between zinc and the GPU on this system: drivers, layers, and access to the device
 * files.
 */
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { release, type } from "node:os";
import { join } from "node:path";
import { ok, skipped, warning, type CheckResult } from "./result.ts";

/** Folders of manifests, as the Vulkan loader searches them on Linux. */
function manifestFolders(kind: "icd.d" | "implicit_layer.d"): string[] {
  const { XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_DATA_DIRS, HOME = "" } = process.env;
  const roots = [
    XDG_CONFIG_HOME ?? join(HOME, ".config"),
    "/etc/xdg",
    "/usr/local/etc",
    "/etc",
    XDG_DATA_HOME ?? join(HOME, ".local/share"),
    ...(XDG_DATA_DIRS ?? "/usr/local/share:/usr/share").split(":"),
  ];
  return roots.map((root) => join(root, "vulkan", kind));
}

function manifests(kind: "icd.d" | "implicit_layer.d"): string[] {
  const found = manifestFolders(kind).flatMap((folder) => {
    try {
      return readdirSync(folder)
        .filter((name) => name.endsWith(".json"))
        .map((name) => join(folder, name));
    } catch {
      return [];
    }
  });
  return [...new Set(found)];
}

export function checkHost(): CheckResult {
  return ok("host", `${type()} ${release()}, ${process.platform} ${process.arch}`);
}

export function checkDrivers(): CheckResult {
  if (process.platform !== "linux") return skipped("drivers", "the system registers them");
  const forced = process.env["VK_DRIVER_FILES"] ?? process.env["VK_ICD_FILENAMES"];
  if (forced) {
    const missing = forced.split(":").filter((path) => !existsSync(path));
    return missing.length === 0
      ? ok("drivers", `${forced}, as the environment says`)
      : warning(
          "drivers",
          `the environment names ${missing.join(", ")}, which does not exist: ` +
            "unset VK_DRIVER_FILES",
        );
  }
  const files = manifests("icd.d");
  return files.length > 0
    ? ok("drivers", files.join(", "))
    : warning(
        "drivers",
        "none is installed: install your GPU's (Debian, Ubuntu: mesa-vulkan-drivers)",
      );
}

/** Overlays and recorders sit in every Vulkan program and have crashed some. */
export function checkLayers(): CheckResult {
  if (process.platform !== "linux") return skipped("implicit layers", "the system registers them");
  const names = manifests("implicit_layer.d").map(layerName);
  return ok("implicit layers", names.length === 0 ? "none" : names.join(", "));
}

function layerName(path: string): string {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, "utf8"));
    const { layer } = manifest as { layer?: { name?: string } };
    return layer?.name ?? path;
  } catch {
    return path;
  }
}

/** GPUs are reached through /dev/dri/renderD…, which belongs to a group. */
export function checkRenderNodes(): CheckResult {
  const name = "device files";
  if (process.platform !== "linux") return skipped(name, "only Linux has them");
  const nodes = existsSync("/dev/dri")
    ? readdirSync("/dev/dri")
        .filter((node) => node.startsWith("renderD"))
        .map((node) => `/dev/dri/${node}`)
    : [];
  if (nodes.length === 0)
    return skipped(name, "there is no /dev/dri/renderD…: no GPU, or one with a driver of its own");
  const closed = nodes.filter((node) => !isAccessible(node));
  if (closed.length === 0) return ok(name, nodes.join(", "));
  const group = groupOf(closed[0] ?? "");
  return warning(
    name,
    `no access to ${closed.join(", ")}: run "sudo usermod -aG ${group} $USER" and log in again`,
  );
}

function isAccessible(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function groupOf(path: string): string {
  try {
    const { gid } = statSync(path);
    const line = readFileSync("/etc/group", "utf8")
      .split("\n")
      .find((entry) => entry.split(":")[2] === String(gid));
    return line?.split(":")[0] ?? String(gid);
  } catch {
    return "render";
  }
}
