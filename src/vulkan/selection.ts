/** Which physical device to use, from plain records: ranking, duplicates, and the user's wish. */
import { UserError } from "../errors.ts";
import { missingRequirements, type Capabilities, type DeviceKind } from "./capabilities.ts";
import { DriverId } from "./constants.ts";

export interface Candidate {
  readonly index: number;
  readonly capabilities: Capabilities;
}

export interface Verdict {
  readonly usable: boolean;
  /** Why it is not used unless asked for, or not at all. */
  readonly reason: string | undefined;
}

const kindRank: Readonly<Record<DeviceKind, number>> = {
  discrete: 0,
  integrated: 1,
  virtual: 2,
  other: 3,
  cpu: 4,
};

/** Where two drivers offer one AMD GPU, Mesa's is the faster and better kept one. */
const driverRank: readonly number[] = [
  DriverId.MESA_RADV,
  DriverId.AMD_OPEN_SOURCE,
  DriverId.AMD_PROPRIETARY,
  DriverId.NVIDIA_PROPRIETARY,
  DriverId.MESA_NVK,
];

/** What can be said of each device of a list, in its order. */
export function judgeDevices(devices: readonly Candidate[]): Verdict[] {
  return devices.map((device) => {
    const missing = missingRequirements(device.capabilities);
    if (missing.length > 0) return { usable: false, reason: missing.join(", ") };
    const twin = devices.find((other) => other !== device && hides(other, device));
    if (twin === undefined) return { usable: true, reason: undefined };
    const reason = `the same GPU as device ${twin.index} through another driver`;
    return { usable: true, reason };
  });
}

/**
 * The device to run on. `wish` is an index or a part of a name (any case); without one, the best
 * kind wins and within a kind the larger memory. Throws a "device" error that lists what there is;
 * it calls the wish what the user did.
 */
export function chooseDevice<T extends Candidate>(
  devices: readonly T[],
  wish?: string,
  called = `--device ${wish}`,
): T {
  const verdicts = judgeDevices(devices);
  if (wish !== undefined) return wishedDevice(devices, verdicts, wish, called);
  const candidates = devices.filter((_, i) => {
    const verdict = verdicts[i];
    return verdict?.usable === true && verdict.reason === undefined;
  });
  const [best] = candidates.toSorted(
    (a, b) =>
      kindRank[a.capabilities.kind] - kindRank[b.capabilities.kind] ||
      localBytes(b.capabilities) - localBytes(a.capabilities),
  );
  if (best !== undefined) return best;
  throw new UserError(
    "device",
    `no usable Vulkan device: ${describe(devices, verdicts) || "none found"}`,
    "update the GPU's driver; zinc --check says more",
  );
}

function wishedDevice<T extends Candidate>(
  devices: readonly T[],
  verdicts: readonly Verdict[],
  wish: string,
  called: string,
): T {
  // "7900" is a part of a name.
  const byIndex = /^\d{1,2}$/.test(wish);
  const position = devices.findIndex((device) =>
    byIndex
      ? device.index === Number(wish)
      : device.capabilities.name.toLowerCase().includes(wish.toLowerCase()) ||
        device.capabilities.pciAddress === wish.toLowerCase(),
  );
  const device = devices[position];
  if (device === undefined) {
    throw new UserError(
      "device",
      `no device matches ${called}`,
      `there are: ${describe(devices, verdicts)}`,
    );
  }
  if (verdicts[position]?.usable !== true) {
    const { index, capabilities } = device;
    throw new UserError(
      "device",
      `device ${index} (${capabilities.name}) cannot be used: ${verdicts[position]?.reason}`,
      "update its driver or take another one with --device",
    );
  }
  return device;
}

function describe(devices: readonly Candidate[], verdicts: readonly Verdict[]): string {
  return devices
    .map(({ index, capabilities }, i) => {
      const reason = verdicts[i]?.reason;
      return `${index} ${capabilities.name}${reason === undefined ? "" : ` (${reason})`}`;
    })
    .join("; ");
}

/** Whether `other` is the better view of the same GPU. */
function hides(other: Candidate, device: Candidate): boolean {
  if (!sameGpu(other.capabilities, device.capabilities)) return false;
  if (missingRequirements(other.capabilities).length > 0) return false;
  const ranks = [other, device].map(({ capabilities }) => {
    const rank = driverRank.indexOf(capabilities.driver.id);
    return rank < 0 ? driverRank.length : rank;
  });
  const [theirs = 0, ours = 0] = ranks;
  return theirs < ours || (theirs === ours && other.index < device.index);
}

function sameGpu(a: Capabilities, b: Capabilities): boolean {
  if (a.kind === "cpu" || b.kind === "cpu") return false;
  if (a.pciAddress !== undefined && b.pciAddress !== undefined)
    return a.pciAddress === b.pciAddress;
  return a.deviceUuid === b.deviceUuid && /[1-9a-f]/.test(a.deviceUuid);
}

/** Bytes of device-local memory. */
export function localBytes(device: Capabilities): number {
  return device.heaps.reduce((sum, heap) => sum + (heap.deviceLocal ? heap.byteSize : 0), 0);
}
