/**
 * Scratch memory that structs are written into before a Vulkan call. One explicit `ArrayBuffer`, so
 * that its address never changes (views created by length may move), and nothing in it can be
 * collected during a call.
 */
import { ptr, type Pointer } from "bun:ffi";
import { invariant } from "../errors.ts";
import { roundUp } from "../math.ts";
import type { Input, Output, Struct, StructFields } from "./layout.ts";

export type Address = Pointer;

/** A struct in the arena: its address for the call, and its values afterwards. */
export interface Placed<F extends StructFields> {
  readonly address: Address;
  readonly offset: number;
  read(): Output<F>;
}

const encoder = new TextEncoder();

export class Arena {
  readonly view: DataView;
  readonly bytes: Uint8Array;
  readonly #base: number;
  #top = 0;

  constructor(byteLength = 1 << 20) {
    const memory = new ArrayBuffer(byteLength);
    this.view = new DataView(memory);
    this.bytes = new Uint8Array(memory);
    this.#base = ptr(memory);
  }

  /** Everything allocated until the end of the scope is freed and zeroed there. */
  frame(): Disposable {
    const start = this.#top;
    return {
      [Symbol.dispose]: () => {
        this.bytes.fill(0, start, this.#top);
        this.#top = start;
      },
    };
  }

  /** The offset of `byteSize` zeroed bytes. */
  allocate(byteSize: number, alignment = 8): number {
    const offset = roundUp(this.#top, alignment);
    invariant(
      offset + byteSize <= this.bytes.length,
      `arena is full: ${offset} + ${byteSize} bytes`,
    );
    this.#top = offset + byteSize;
    return offset;
  }

  addressOf(offset: number): Address {
    return (this.#base + offset) as Address;
  }

  place<F extends StructFields>(struct: Struct<F>, value: Input<F> = {}): Placed<F> {
    const offset = this.allocate(struct.byteSize, struct.alignment);
    struct.write(this, offset, value);
    return { address: this.addressOf(offset), offset, read: () => struct.read(this, offset) };
  }

  /** Writes a struct and returns its address. */
  put<F extends StructFields>(struct: Struct<F>, value: Input<F> = {}): Address {
    return this.place(struct, value).address;
  }

  /** Room for `count` structs that a call fills; each starts as `value`, which sets sType. */
  placeArray<F extends StructFields>(
    struct: Struct<F>,
    count: number,
  ): { readonly address: Address; read(index: number): Output<F> } {
    const offset = this.allocate(struct.byteSize * count, struct.alignment);
    for (let i = 0; i < count; i++) struct.write(this, offset + i * struct.byteSize, {});
    return {
      address: this.addressOf(offset),
      read: (index) => struct.read(this, offset + index * struct.byteSize),
    };
  }

  /** A zero-terminated string. */
  putString(text: string): Address {
    const encoded = encoder.encode(text);
    const offset = this.allocate(encoded.length + 1, 1);
    this.bytes.set(encoded, offset);
    return this.addressOf(offset);
  }

  putBytes(source: Uint8Array, alignment = 8): Address {
    const offset = this.allocate(Math.max(source.length, 1), alignment);
    this.bytes.set(source, offset);
    return this.addressOf(offset);
  }

  /** Room for one out-parameter of eight bytes. */
  out(): { readonly address: Address; u32(): number; u64(): bigint; pointer(): Address } {
    const offset = this.allocate(8, 8);
    return {
      address: this.addressOf(offset),
      u32: () => this.view.getUint32(offset, true),
      u64: () => this.view.getBigUint64(offset, true),
      pointer: () => Number(this.view.getBigUint64(offset, true)) as Address,
    };
  }
}
