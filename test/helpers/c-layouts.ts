/**
 * How a C compiler lays out the Vulkan structs that zinc declares, and which values its headers
 * give the enums. Run as a program it writes the table that machines without compiler or headers
 * compare with:
 *
 *     sh .ci/setup headers && bun test/helpers/c-layouts.ts
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as constants from "../../src/vulkan/constants.ts";
import { Result } from "../../src/vulkan/result.ts";
import * as structs from "../../src/vulkan/structs.ts";

/** Size of a struct, and [offset, size] of each member. */
export interface StructLayout {
  readonly byteSize: number;
  readonly members: Readonly<Record<string, readonly [offset: number, byteSize: number]>>;
}

export interface Layouts {
  /** Version of the headers. */
  readonly version: string;
  /** Values by the names of C. */
  readonly values: Readonly<Record<string, number>>;
  readonly structs: Readonly<Record<string, StructLayout>>;
}

export const tablePath = join(import.meta.dir, "../vulkan/layouts.json");

/** Debian trixie's, unpacked by `.ci/setup headers`. */
const newHeaders = join(import.meta.dir, "../../node_modules/.cache/zinc/vulkan-headers");

/** Prefix and suffix of each enum's members in C. */
const enumNames: Readonly<Record<string, readonly [prefix: string, suffix?: string]>> = {
  StructureType: ["VK_STRUCTURE_TYPE_"],
  DeviceType: ["VK_PHYSICAL_DEVICE_TYPE_"],
  DriverId: ["VK_DRIVER_ID_"],
  QueueFlag: ["VK_QUEUE_", "_BIT"],
  MemoryProperty: ["VK_MEMORY_PROPERTY_", "_BIT"],
  MemoryHeapFlag: ["VK_MEMORY_HEAP_", "_BIT"],
  MemoryAllocateFlag: ["VK_MEMORY_ALLOCATE_", "_BIT"],
  BufferUsage: ["VK_BUFFER_USAGE_", "_BIT"],
  ShaderStage: ["VK_SHADER_STAGE_", "_BIT"],
  PipelineBindPoint: ["VK_PIPELINE_BIND_POINT_"],
  PipelineShaderStageCreateFlag: ["VK_PIPELINE_SHADER_STAGE_CREATE_", "_BIT"],
  PipelineCreateFlag: ["VK_PIPELINE_CREATE_", "_BIT"],
  CommandPoolCreateFlag: ["VK_COMMAND_POOL_CREATE_", "_BIT"],
  CommandBufferUsage: ["VK_COMMAND_BUFFER_USAGE_", "_BIT"],
  SemaphoreType: ["VK_SEMAPHORE_TYPE_"],
  QueryType: ["VK_QUERY_TYPE_"],
  QueryResult: ["VK_QUERY_RESULT_", "_BIT"],
  PipelineStage: ["VK_PIPELINE_STAGE_", "_BIT"],
  Access: ["VK_ACCESS_", "_BIT"],
  SubgroupFeature: ["VK_SUBGROUP_FEATURE_", "_BIT"],
  ComponentType: ["VK_COMPONENT_TYPE_", "_KHR"],
  Scope: ["VK_SCOPE_", "_KHR"],
  Result: ["VK_"],
};

/** What `src/vulkan` declares, in the form of the table. */
export function declaredLayouts(): Layouts {
  return {
    version: "zinc",
    values: Object.fromEntries(
      Object.entries({ ...constants, Result }).flatMap(([name, values]) =>
        Object.entries(values).map(([key, value]) => [enumeratorName(name, key), value]),
      ),
    ),
    structs: Object.fromEntries(
      Object.values(structs).map(({ name, byteSize, fields, offsets }) => [
        name,
        {
          byteSize,
          members: Object.fromEntries(
            Object.entries(fields).map(([key, field]) => [
              key,
              [offsets[key as keyof typeof offsets] ?? -1, field.byteSize],
            ]),
          ),
        },
      ]),
    ),
  };
}

/** What the compiler says of everything declared that its headers know; undefined without them. */
export function compiledLayouts(includeFolder = "/usr/include"): Layouts | undefined {
  const header = readHeader(includeFolder);
  if (header === undefined || Bun.which("cc") === null) return undefined;
  const known = new Set(header.match(/\w+/g));
  const folder = mkdtempSync(join(tmpdir(), "zinc-layouts-"));
  try {
    const [source, program] = [join(folder, "layouts.c"), join(folder, "layouts")];
    writeFileSync(source, layoutProgram(known));
    run(["cc", "-w", `-I${includeFolder}`, source, "-o", program]);
    return JSON.parse(run([program])) as Layouts;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A C program that prints the layouts as JSON, each struct on a line. */
function layoutProgram(known: ReadonlySet<string>): string {
  const { values, structs: declared } = declaredLayouts();
  const lines = [
    "#include <stddef.h>",
    "#include <stdio.h>",
    "#include <vulkan/vulkan_core.h>",
    "int main(void) {",
    'printf("{\\n  \\"version\\": \\"%d.%d.%d\\",\\n  \\"values\\": {", ' +
      ["MAJOR", "MINOR", "PATCH"]
        .map((part) => `VK_API_VERSION_${part}(VK_HEADER_VERSION_COMPLETE)`)
        .join() +
      ");",
    'const char *comma = "";',
  ];
  for (const name of Object.keys(values).filter((value) => known.has(value))) {
    lines.push(`printf("%s\\n    \\"${name}\\": %d", comma, (int)${name}); comma = ",";`);
  }
  lines.push('printf("\\n  },\\n  \\"structs\\": {"); comma = "";');
  for (const [name, { members }] of Object.entries(declared)) {
    if (!known.has(name)) continue;
    lines.push(
      `printf("%s\\n    \\"${name}\\": { \\"byteSize\\": %zu, ", comma, sizeof(${name}));`,
      'printf("\\"members\\": {");',
      'comma = "";',
    );
    for (const member of Object.keys(members)) {
      lines.push(
        `printf("%s \\"${member}\\": [%zu, %zu]", comma, offsetof(${name}, ${member}), ` +
          `sizeof(((${name} *)0)->${member})); comma = ",";`,
      );
    }
    lines.push('printf(" } }"); comma = ",";');
  }
  lines.push('printf("\\n  }\\n}\\n");', "return 0;", "}", "");
  return lines.join("\n");
}

function enumeratorName(enumName: string, key: string): string {
  const [prefix, suffix = ""] = enumNames[enumName] ?? [`${enumName} has no prefix: `];
  if (key === "R64") return "VK_QUERY_RESULT_64_BIT";
  // The author's tag stands behind the suffix.
  const [, name = key, tag = ""] = /^(\w+?)(_KHR|_EXT)?$/.exec(key) ?? [];
  return suffix.startsWith("_BIT") ? `${prefix}${name}${suffix}${tag}` : `${prefix}${key}${suffix}`;
}

function readHeader(includeFolder: string): string | undefined {
  try {
    return readFileSync(join(includeFolder, "vulkan/vulkan_core.h"), "utf8");
  } catch {
    return undefined;
  }
}

function run(command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`${command[0]}: ${stderr.toString().slice(0, 2000)}`);
  return stdout.toString();
}

if (import.meta.main) {
  const layouts = compiledLayouts(newHeaders);
  if (layouts === undefined) throw new Error("run `sh .ci/setup headers` first; cc is needed, too");
  const json = Object.entries(layouts.structs).map(
    ([name, layout]) => `    ${JSON.stringify(name)}: ${JSON.stringify(layout)}`,
  );
  writeFileSync(
    tablePath,
    `{\n  "version": "${layouts.version}",\n` +
      `  "values": ${JSON.stringify(layouts.values, null, 2).replaceAll("\n", "\n  ")},\n` +
      `  "structs": {\n${json.join(",\n")}\n  }\n}\n`,
  );
}
