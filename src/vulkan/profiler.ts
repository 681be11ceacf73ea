/** Time per dispatch of a program, from timestamp queries, summed by label. */
import { invariant } from "../errors.ts";
import type { Address } from "./arena.ts";
import { PipelineStage, QueryResult, QueryType } from "./constants.ts";
import type { Device } from "./device.ts";
import { check } from "./result.ts";
import { VkQueryPoolCreateInfo } from "./structs.ts";

export interface ProfileLine {
  readonly label: string;
  readonly pipeline: string;
  readonly count: number;
  readonly nanoseconds: number;
}

export class Profiler {
  readonly #device: Device;
  readonly #pool: bigint;
  readonly #capacity: number;
  readonly #marks: { label: string; pipeline: string }[] = [];

  /** `capacity`: the most dispatches of the program. */
  constructor(device: Device, capacity = 8192) {
    const { vk, arena, handle } = device;
    using _ = arena.frame();
    this.#device = device;
    this.#capacity = capacity + 1;
    const info = arena.put(VkQueryPoolCreateInfo, {
      queryType: QueryType.TIMESTAMP,
      queryCount: this.#capacity,
    });
    const pool = arena.out();
    check("vkCreateQueryPool", vk.vkCreateQueryPool(handle, info, null, pool.address));
    this.#pool = pool.u64();
  }

  /** Recorded at the start of a program. */
  begin(commands: Address): void {
    const { vk } = this.#device;
    this.#marks.length = 0;
    vk.vkCmdResetQueryPool(commands, this.#pool, 0, this.#capacity);
    vk.vkCmdWriteTimestamp(commands, PipelineStage.BOTTOM_OF_PIPE, this.#pool, 0);
  }

  /** Recorded behind a dispatch. */
  mark(commands: Address, label: string, pipeline: string): void {
    this.#marks.push({ label, pipeline });
    invariant(this.#marks.length < this.#capacity, `more than ${this.#capacity} dispatches to profile`);
    const { vk } = this.#device;
    vk.vkCmdWriteTimestamp(commands, PipelineStage.BOTTOM_OF_PIPE, this.#pool, this.#marks.length);
  }

  /** The times of the last submission, which must be done; the longest first. */
  read(): ProfileLine[] {
    const { vk, handle, capabilities } = this.#device;
    const count = this.#marks.length + 1;
    const ticks = new BigUint64Array(new ArrayBuffer(count * 8));
    check("vkGetQueryPoolResults", vk.vkGetQueryPoolResults(
      handle, this.#pool, 0, count, BigInt(count * 8), ticks, 8n, QueryResult.R64 | QueryResult.WAIT,
    ));
    const lines = new Map<string, { label: string; pipeline: string; count: number; nanoseconds: number }>();
    this.#marks.forEach(({ label, pipeline }, i) => {
      const key = `${label}\n${pipeline}`;
      const line = lines.get(key) ?? { label, pipeline, count: 0, nanoseconds: 0 };
      line.count++;
      line.nanoseconds +=
        Number((ticks[i + 1] ?? 0n) - (ticks[i] ?? 0n)) * capabilities.limits.timestampPeriodNs;
      lines.set(key, line);
    });
    return [...lines.values()].toSorted((a, b) => b.nanoseconds - a.nanoseconds);
  }

  free(): void {
    this.#device.vk.vkDestroyQueryPool(this.#device.handle, this.#pool, null);
  }
}
