/**
 * GPU time of programs from timestamp queries: of each dispatch, summed by label, or of the whole.
 */
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
    this.#device = device;
    this.#capacity = capacity + 1;
    this.#pool = createPool(device, this.#capacity);
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
    invariant(
      this.#marks.length < this.#capacity,
      `more than ${this.#capacity} dispatches to profile`,
    );
    const { vk } = this.#device;
    vk.vkCmdWriteTimestamp(commands, PipelineStage.BOTTOM_OF_PIPE, this.#pool, this.#marks.length);
  }

  /** The times of the last submission, which must be done; the longest first. */
  read(): ProfileLine[] {
    const times = readNanoseconds(this.#device, this.#pool, this.#marks.length + 1);
    const lines = new Map<
      string,
      { label: string; pipeline: string; count: number; nanoseconds: number }
    >();
    this.#marks.forEach(({ label, pipeline }, i) => {
      const key = `${label}\n${pipeline}`;
      const line = lines.get(key) ?? { label, pipeline, count: 0, nanoseconds: 0 };
      line.count++;
      line.nanoseconds += (times[i + 1] ?? 0) - (times[i] ?? 0);
      lines.set(key, line);
    });
    return [...lines.values()].toSorted((a, b) => b.nanoseconds - a.nanoseconds);
  }

  free(): void {
    this.#device.vk.vkDestroyQueryPool(this.#device.handle, this.#pool, null);
  }
}

/** The GPU time of one program from its first command to its last. */
export class ProgramTimer {
  readonly #device: Device;
  readonly #pool: bigint;

  constructor(device: Device) {
    this.#device = device;
    this.#pool = createPool(device, 2);
  }

  begin(commands: Address): void {
    const { vk } = this.#device;
    vk.vkCmdResetQueryPool(commands, this.#pool, 0, 2);
    vk.vkCmdWriteTimestamp(commands, PipelineStage.TOP_OF_PIPE, this.#pool, 0);
  }

  end(commands: Address): void {
    this.#device.vk.vkCmdWriteTimestamp(commands, PipelineStage.BOTTOM_OF_PIPE, this.#pool, 1);
  }

  /** Of the last submission, which must be done. */
  milliseconds(): number {
    const [start = 0, end = 0] = readNanoseconds(this.#device, this.#pool, 2);
    return (end - start) / 1e6;
  }

  free(): void {
    this.#device.vk.vkDestroyQueryPool(this.#device.handle, this.#pool, null);
  }
}

function createPool({ vk, arena, handle }: Device, queryCount: number): bigint {
  using _ = arena.frame();
  const info = arena.put(VkQueryPoolCreateInfo, { queryType: QueryType.TIMESTAMP, queryCount });
  const pool = arena.out();
  check("vkCreateQueryPool", vk.vkCreateQueryPool(handle, info, null, pool.address));
  return pool.u64();
}

/** Times since the first query. */
function readNanoseconds(
  { vk, handle, capabilities }: Device,
  pool: bigint,
  count: number,
): number[] {
  const ticks = new BigUint64Array(new ArrayBuffer(count * 8));
  check(
    "vkGetQueryPoolResults",
    vk.vkGetQueryPoolResults(
      handle,
      pool,
      0,
      count,
      BigInt(count * 8),
      ticks,
      8n,
      QueryResult.R64 | QueryResult.WAIT,
    ),
  );
  const start = ticks[0] ?? 0n;
  return Array.from(ticks, (tick) => Number(tick - start) * capabilities.limits.timestampPeriodNs);
}
