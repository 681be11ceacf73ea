/**
 * Submitting work to the queue and waiting for it, on one timeline semaphore that counts
 * submissions.
 */
import { invariant, UserError } from "../errors.ts";
import type { Address } from "./arena.ts";
import { SemaphoreType } from "./constants.ts";
import type { Device } from "./device.ts";
import { check, Result, VulkanError } from "./result.ts";
import {
  VkSemaphoreCreateInfo,
  VkSemaphoreTypeCreateInfo,
  VkSemaphoreWaitInfo,
  VkSubmitInfo,
  VkTimelineSemaphoreSubmitInfo,
} from "./structs.ts";

/** Kernel drivers reset a GPU after 2 to 60 s; a software device may take as long as it needs. */
const hangTimeoutSeconds = 120;

export class Timeline {
  readonly #device: Device;
  readonly #semaphore: bigint;
  /**
   * Structs of the two calls of every step, written once; only values and the command buffer
   * change.
   */
  readonly #memory: ReturnType<typeof placeSubmission>;
  #submitted = 0;
  #label = "nothing";

  constructor(device: Device) {
    const { vk, arena, handle } = device;
    this.#device = device;
    const semaphore = arena.out();
    const type = arena.put(VkSemaphoreTypeCreateInfo, { semaphoreType: SemaphoreType.TIMELINE });
    const info = arena.put(VkSemaphoreCreateInfo, { pNext: type });
    check("vkCreateSemaphore", vk.vkCreateSemaphore(handle, info, null, semaphore.address));
    this.#semaphore = semaphore.u64();
    this.#memory = placeSubmission(device, this.#semaphore);
  }

  /** How many submissions there have been; the number of the latest. */
  get submitted(): number {
    return this.#submitted;
  }

  /**
   * Hands a recorded command buffer to the queue and returns its number. `label` names it if it
   * fails.
   */
  submit(commands: Address, label: string): number {
    const { arena, vk, queue } = this.#device;
    const memory = this.#memory;
    const number = this.#submitted + 1;
    arena.view.setBigUint64(memory.commands, BigInt(commands), true);
    arena.view.setBigUint64(memory.signalValue, BigInt(number), true);
    check("vkQueueSubmit", vk.vkQueueSubmit(queue, 1, memory.submitInfo, 0n), label);
    this.#submitted = number;
    this.#label = label;
    return number;
  }

  /** Blocks until that submission is done. Throws if the device is lost or hangs. */
  wait(number: number): void {
    invariant(number <= this.#submitted, `waiting for submission ${number} of ${this.#submitted}`);
    const { arena, vk, handle, capabilities } = this.#device;
    arena.view.setBigUint64(this.#memory.waitValue, BigInt(number), true);
    const seconds = capabilities.kind === "cpu" ? 86_400 : hangTimeoutSeconds;
    const result = vk.vkWaitSemaphores(
      handle,
      this.#memory.waitInfo,
      BigInt(seconds) * 1_000_000_000n,
    );
    if (result === Result.SUCCESS) return;
    if (result === Result.TIMEOUT) {
      throw new UserError(
        "failed",
        `${capabilities.name} did not finish "${this.#label}" within ${seconds} s`,
        "restart the program; look into the system's log (dmesg) for the reason",
      );
    }
    throw new VulkanError("vkWaitSemaphores", result, this.#label);
  }

  /** Whether that submission is done, without waiting. */
  isDone(number: number): boolean {
    const { arena, vk, handle } = this.#device;
    using _ = arena.frame();
    const value = arena.out();
    check(
      "vkGetSemaphoreCounterValue",
      vk.vkGetSemaphoreCounterValue(handle, this.#semaphore, value.address),
    );
    return value.u64() >= BigInt(number);
  }

  close(): void {
    this.#device.vk.vkDestroySemaphore(this.#device.handle, this.#semaphore, null);
  }
}

function placeSubmission({ arena }: Device, semaphore: bigint) {
  const commands = arena.allocate(8);
  const signalValue = arena.allocate(8);
  const waitValue = arena.allocate(8);
  const semaphores = arena.allocate(8);
  arena.view.setBigUint64(semaphores, semaphore, true);
  const values = arena.place(VkTimelineSemaphoreSubmitInfo);
  const submit = arena.place(VkSubmitInfo, { pNext: values.address });
  const wait = arena.place(VkSemaphoreWaitInfo);
  const setPointer = (at: number, target: number) =>
    arena.view.setBigUint64(at, BigInt(arena.addressOf(target)), true);
  const setCount = (at: number) => arena.view.setUint32(at, 1, true);
  setCount(values.offset + VkTimelineSemaphoreSubmitInfo.offsets.signalSemaphoreValueCount);
  setPointer(
    values.offset + VkTimelineSemaphoreSubmitInfo.offsets.pSignalSemaphoreValues,
    signalValue,
  );
  setCount(submit.offset + VkSubmitInfo.offsets.commandBufferCount);
  setPointer(submit.offset + VkSubmitInfo.offsets.pCommandBuffers, commands);
  setCount(submit.offset + VkSubmitInfo.offsets.signalSemaphoreCount);
  setPointer(submit.offset + VkSubmitInfo.offsets.pSignalSemaphores, semaphores);
  setCount(wait.offset + VkSemaphoreWaitInfo.offsets.semaphoreCount);
  setPointer(wait.offset + VkSemaphoreWaitInfo.offsets.pSemaphores, semaphores);
  setPointer(wait.offset + VkSemaphoreWaitInfo.offsets.pValues, waitValue);
  return {
    commands,
    signalValue,
    waitValue,
    submitInfo: submit.address,
    waitInfo: wait.address,
  };
}
