/** The Vulkan instance: version, layers, and the physical devices with their capabilities. */
import { UserError } from "../errors.ts";
import { Arena, type Address } from "./arena.ts";
import { readCapabilities, type Capabilities } from "./capabilities.ts";
import { openLoader, type InstanceFunctions, type Loader } from "./library.ts";
import { check, Result, VulkanError } from "./result.ts";
import { VkInstanceCreateInfo, VkLayerProperties } from "./structs.ts";
import { captureValidationMessages, validationLayer, validationRequested } from "./validation.ts";

export interface PhysicalDevice {
  readonly handle: Address;
  /** Position in the driver's list: the number that `--device` takes. */
  readonly index: number;
  readonly capabilities: Capabilities;
}

export type Version = readonly [major: number, minor: number, patch: number];

/** The highest version whose core functions zinc knows. */
const wantedVersion = makeVersion(1, 3);

export class Instance {
  readonly loader: Loader;
  readonly vk: InstanceFunctions;
  readonly handle: Address;
  /** What the loader offers. */
  readonly version: Version;
  readonly arena: Arena;
  #devices: readonly PhysicalDevice[] | undefined;

  private constructor(loader: Loader, handle: Address, version: Version, arena: Arena) {
    this.loader = loader;
    this.handle = handle;
    this.version = version;
    this.arena = arena;
    this.vk = loader.instanceFunctions(handle);
  }

  /** Opens the loader and creates an instance. Throws a "device" error without loader or driver. */
  static create(loader: Loader = openLoader()): Instance {
    const arena = new Arena();
    using _ = arena.frame();
    const offered = arena.out();
    check("vkEnumerateInstanceVersion", loader.vkEnumerateInstanceVersion(offered.address));
    const layers: string[] = [];
    if (validationRequested) {
      if (!instanceLayers(loader, arena).includes(validationLayer)) {
        throw new VulkanError("vkCreateInstance", Result.ERROR_LAYER_NOT_PRESENT, validationLayer);
      }
      captureValidationMessages();
      layers.push(validationLayer);
    }
    const info = arena.place(VkInstanceCreateInfo, {
      pApplicationInfo: {
        pApplicationName: "zinc",
        pEngineName: "zinc",
        apiVersion: Math.min(offered.u32(), wantedVersion),
      },
      ppEnabledLayerNames: layers,
    });
    const handle = arena.out();
    check("vkCreateInstance", loader.vkCreateInstance(info.address, null, handle.address));
    return new Instance(loader, handle.pointer(), splitVersion(offered.u32()), arena);
  }

  /** All physical devices, in the driver's order. */
  get devices(): readonly PhysicalDevice[] {
    this.#devices ??= this.#enumerate();
    return this.#devices;
  }

  /** Names of the layers that the loader would offer; implicit ones may already be active. */
  layers(): string[] {
    using _ = this.arena.frame();
    return instanceLayers(this.loader, this.arena);
  }

  close(): void {
    this.vk.vkDestroyInstance(this.handle, null);
  }

  #enumerate(): PhysicalDevice[] {
    using _ = this.arena.frame();
    const count = this.arena.out();
    const call = "vkEnumeratePhysicalDevices";
    const first = this.vk.vkEnumeratePhysicalDevices(this.handle, count.address, null);
    // Some loaders say "no driver" only here.
    if (first === -3 || count.u32() === 0) throw noDevice();
    check(call, first);
    const list = this.arena.allocate(count.u32() * 8);
    const handles = this.arena.addressOf(list);
    check(call, this.vk.vkEnumeratePhysicalDevices(this.handle, count.address, handles));
    const matrixFunctions = this.loader.cooperativeMatrixFunctions(this.handle);
    return Array.from({ length: count.u32() }, (_unused, index) => {
      const handle = Number(this.arena.view.getBigUint64(list + index * 8, true)) as Address;
      const capabilities = readCapabilities(this.vk, matrixFunctions, handle, this.arena);
      return { handle, index, capabilities };
    });
  }
}

function noDevice(): UserError {
  return new UserError(
    "device",
    "no Vulkan device found",
    "install your GPU's Vulkan driver (Debian, Ubuntu: mesa-vulkan-drivers) and see zinc --check",
  );
}

function instanceLayers(loader: Loader, arena: Arena): string[] {
  const count = arena.out();
  const call = "vkEnumerateInstanceLayerProperties";
  check(call, loader.vkEnumerateInstanceLayerProperties(count.address, null));
  const list = arena.placeArray(VkLayerProperties, count.u32());
  check(call, loader.vkEnumerateInstanceLayerProperties(count.address, list.address));
  return Array.from({ length: count.u32() }, (_, i) => list.read(i).layerName);
}

function makeVersion(major: number, minor: number): number {
  return (major << 22) | (minor << 12);
}

function splitVersion(version: number): Version {
  return [(version >>> 22) & 0x7f, (version >>> 12) & 0x3ff, version & 0xfff];
}
