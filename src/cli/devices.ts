/** `zinc devices`: every Vulkan device, and why it is or is not used. */
import { formatBytes } from "../math.ts";
import type { Capabilities } from "../vulkan/capabilities.ts";
import { Instance, type PhysicalDevice } from "../vulkan/instance.ts";
import { chooseDevice, judgeDevices, localBytes, type Verdict } from "../vulkan/selection.ts";
import { command } from "./command.ts";
import { outputFlags } from "./flags.ts";
import { runExitCodes } from "./manual.ts";
import { writeOut } from "./output.ts";

export const devicesCommand = command({
  name: "devices",
  summary: "List the Vulkan devices",
  description: `
    Lists every device with its number, memory and driver, and says of each why it is or is not
    used. The one that zinc takes by itself has a star.
  `,
  examples: {
    "zinc devices": "which devices are there?",
    'zinc -d 1 -p "Hello"': "use the second",
    "zinc -d radeon -p Hello": "use one by a part of its name",
  },
  exitCodes: { 4: runExitCodes[4] },
  flags: { json: outputFlags.json },
  async run({ json }) {
    const instance = Instance.create();
    const { devices } = instance;
    const verdicts = judgeDevices(devices);
    const chosen = tryChoose(devices);
    const rows = devices.map((device, i) => summarize(device, verdicts[i], device === chosen));
    instance.close();
    if (json === true) await writeOut(`${JSON.stringify(rows)}\n`);
    else for (const row of rows) await writeOut(`${format(row)}\n`);
  },
});

function tryChoose(devices: readonly PhysicalDevice[]): PhysicalDevice | undefined {
  try {
    return chooseDevice(devices);
  } catch {
    return undefined;
  }
}

/** The facts of a device that people and scripts ask for. */
export function describeDevice(capabilities: Capabilities) {
  const { name, kind, driver, apiVersion, pciAddress, subgroup, cooperativeMatrices, features } =
    capabilities;
  return {
    name,
    kind,
    driver: [driver.name, driver.info].filter((part) => part !== "").join(" "),
    api: apiVersion.join("."),
    pci: pciAddress ?? null,
    memoryBytes: localBytes(capabilities),
    subgroupSizes: [subgroup.minSize, subgroup.maxSize],
    integerDotProduct: features.integerDotProductAccelerated,
    matrixShapes: cooperativeMatrices.map(
      ({ m, n, k, operands, accumulator }) => `${m}x${n}x${k} ${operands} to ${accumulator}`,
    ),
  };
}

function summarize(
  { index, capabilities }: PhysicalDevice,
  verdict: Verdict | undefined,
  isDefault: boolean,
) {
  return {
    index,
    ...describeDevice(capabilities),
    usable: verdict?.usable ?? false,
    reason: verdict?.reason ?? null,
    default: isDefault,
  };
}

function format(row: ReturnType<typeof summarize>): string {
  const mark = row.default ? "*" : " ";
  const matrix = row.matrixShapes.length > 0 ? `, ${row.matrixShapes.length} matrix shapes` : "";
  const reason =
    row.reason === null
      ? ""
      : `\n    ${row.usable ? "not used unless asked for" : "cannot be used"}: ${row.reason}`;
  return (
    `${mark} ${row.index}  ${row.name}\n` +
    `    ${row.kind}, ${formatBytes(row.memoryBytes)}, ${row.driver}, Vulkan ${row.api}, ` +
    `subgroups ${row.subgroupSizes.join("–")}${matrix}${reason}`
  );
}
