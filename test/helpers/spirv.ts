/** What tests want to know of a SPIR-V module: its version, its capabilities, its parameters. */

/** Opcodes, decorations and classes of the SPIR-V specification, version 1.6, section 3. */
const Op = {
  EXTENSION: 10,
  CAPABILITY: 17,
  ENTRY_POINT: 15,
  TYPE_INT: 21,
  TYPE_FLOAT: 22,
  TYPE_VECTOR: 23,
  TYPE_ARRAY: 28,
  TYPE_STRUCT: 30,
  TYPE_POINTER: 32,
  CONSTANT: 43,
  SPEC_CONSTANT: 50,
  VARIABLE: 59,
  DECORATE: 71,
  MEMBER_DECORATE: 72,
} as const;
const Decoration = { SPEC_ID: 1, ARRAY_STRIDE: 6, OFFSET: 35 } as const;
const StorageClass = { PUSH_CONSTANT: 9 } as const;

const capabilityNames: Readonly<Record<number, string>> = {
  1: "Shader",
  9: "Float16",
  10: "Float64",
  11: "Int64",
  22: "Int16",
  39: "Int8",
  61: "GroupNonUniform",
  62: "GroupNonUniformVote",
  63: "GroupNonUniformArithmetic",
  64: "GroupNonUniformBallot",
  65: "GroupNonUniformShuffle",
  66: "GroupNonUniformShuffleRelative",
  67: "GroupNonUniformClustered",
  4433: "StorageBuffer16BitAccess",
  4448: "StorageBuffer8BitAccess",
  5345: "VulkanMemoryModel",
  5347: "PhysicalStorageBufferAddresses",
  6016: "DotProductInputAll",
  6018: "DotProductInput4x8BitPacked",
  6019: "DotProduct",
  6022: "CooperativeMatrixKHR",
};

export interface SpirvModule {
  /** "1.5" */
  readonly version: string;
  readonly capabilities: readonly string[];
  readonly extensions: readonly string[];
  /** Ids of the specialization constants, ascending. */
  readonly constantIds: readonly number[];
  /** The push constant block: where its members lie, and its size without padding at the end. */
  readonly parameters:
    { readonly offsets: readonly number[]; readonly byteSize: number } | undefined;
}

type Instruction = readonly [opcode: number, ...operands: number[]];

export function parseSpirv(bytes: Uint8Array): SpirvModule {
  const words = new Uint32Array(new Uint8Array(bytes).buffer);
  if (words[0] !== 0x07230203) throw new Error("not SPIR-V");
  const version = words[1] ?? 0;
  const instructions = [...instructionsOf(words)];
  const of = (opcode: number) =>
    instructions.filter(([code]) => code === opcode).map(([, ...operands]) => operands);
  return {
    version: `${(version >>> 16) & 255}.${(version >>> 8) & 255}`,
    capabilities: of(Op.CAPABILITY).map(([id = 0]) => capabilityNames[id] ?? `${id}`),
    extensions: of(Op.EXTENSION).map(textOf),
    constantIds: of(Op.DECORATE)
      .filter(([, decoration]) => decoration === Decoration.SPEC_ID)
      .map(([, , id = -1]) => id)
      .toSorted((a, b) => a - b),
    parameters: parametersOf(instructions),
  };
}

function* instructionsOf(words: Uint32Array): Generator<Instruction> {
  for (let at = 5; at < words.length;) {
    const head = words[at] ?? 0;
    const length = head >>> 16;
    if (length === 0) throw new Error(`an instruction of no words at ${at}`);
    yield [head & 0xffff, ...words.subarray(at + 1, at + length)];
    at += length;
  }
}

function parametersOf(instructions: readonly Instruction[]): SpirvModule["parameters"] {
  const types = new Map<number, Instruction>();
  const offsets = new Map<string, number>();
  let block: number | undefined;
  for (const instruction of instructions) {
    const [opcode, first = 0, second = 0, third = 0, fourth = 0] = instruction;
    if (opcode >= Op.TYPE_INT && opcode <= Op.TYPE_POINTER) types.set(first, instruction);
    if (opcode === Op.CONSTANT) types.set(second, instruction);
    if (opcode === Op.MEMBER_DECORATE && third === Decoration.OFFSET) {
      offsets.set(`${first}.${second}`, fourth);
    }
    if (opcode === Op.VARIABLE && third === StorageClass.PUSH_CONSTANT) {
      block = types.get(first)?.[3];
    }
  }
  if (block === undefined) return undefined;
  const members = (id: number) =>
    (types.get(id) ?? [])
      .slice(2)
      .map((type, i) => ({ type, offset: offsets.get(`${id}.${i}`) ?? -1 }));
  const sizeOf = (id: number): number => {
    const [opcode, , a = 0, b = 0] = types.get(id) ?? [0];
    switch (opcode) {
      case Op.TYPE_INT:
      case Op.TYPE_FLOAT:
        return a / 8;
      case Op.TYPE_VECTOR:
        return sizeOf(a) * b;
      case Op.TYPE_POINTER:
        return 8;
      case Op.TYPE_ARRAY:
        return sizeOf(a) * (types.get(b)?.[3] ?? 0);
      case Op.TYPE_STRUCT:
        return Math.max(...members(id).map(({ type, offset }) => offset + sizeOf(type)));
      default:
        throw new Error(`a parameter of opcode ${opcode}`);
    }
  };
  return { offsets: members(block).map(({ offset }) => offset), byteSize: sizeOf(block) };
}

function textOf(words: readonly number[]): string {
  const bytes = new Uint8Array(Uint32Array.from(words).buffer);
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
}
