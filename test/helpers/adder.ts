/**
 * A kernel of the tests' own, so that tests of programs do not depend on any of ours: y = a + b.
 *
 *     layout(local_size_x = 32) in;
 *     layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
 *     layout(push_constant, std430) uniform P { Floats a; Floats b; Floats y; uint count; };
 *     void main() {
 *         const uint i = gl_GlobalInvocationID.x;
 *         if (i < count) y.at[i] = a.at[i] + b.at[i];
 *     }
 */
import { addressOf, type BufferSlice } from "../../src/vulkan/buffer.ts";
import type { Groups, Program } from "../../src/vulkan/program.ts";
import { testGpu } from "./gpu.ts";

/** `glslc --target-env=vulkan1.2 -O` of the above. */
const spirv = Uint8Array.fromBase64(
  [
    "AwIjBwAFAQALAA0AOAAAAAAAAAARAAIAAQAAABEAAgDjFAAACwAGAAEAAABHTFNMLnN0ZC40NTAAAAAADgADAOQUAAAB",
    "AAAADwAHAAUAAAAEAAAAbWFpbgAAAAALAAAAFwAAABAABgAEAAAAEQAAACAAAAABAAAAAQAAAEcABAALAAAACwAAABwA",
    "AABHAAMAEgAAAAIAAABIAAUAEgAAAAAAAAAjAAAAAAAAAEgABQASAAAAAQAAACMAAAAIAAAASAAFABIAAAACAAAAIwAA",
    "ABAAAABIAAUAEgAAAAMAAAAjAAAAGAAAAEcABAAUAAAABgAAAAQAAABHAAMAFQAAAAIAAABIAAUAFQAAAAAAAAAjAAAA",
    "AAAAAEcABAA3AAAACwAAABkAAAATAAIAAgAAACEAAwADAAAAAgAAABUABAAGAAAAIAAAAAAAAAAXAAQACQAAAAYAAAAD",
    "AAAAIAAEAAoAAAABAAAACQAAADsABAAKAAAACwAAAAEAAAArAAQABgAAAAwAAAAAAAAAIAAEAA0AAAABAAAABgAAACcA",
    "AwARAAAA5RQAAB4ABgASAAAAEQAAABEAAAARAAAABgAAABYAAwATAAAAIAAAAB0AAwAUAAAAEwAAAB4AAwAVAAAAFAAA",
    "ACAABAARAAAA5RQAABUAAAAgAAQAFgAAAAkAAAASAAAAOwAEABYAAAAXAAAACQAAABUABAAYAAAAIAAAAAEAAAArAAQA",
    "GAAAABkAAAADAAAAIAAEABoAAAAJAAAABgAAABQAAgAdAAAAKwAEABgAAAAhAAAAAgAAACAABAAiAAAACQAAABEAAAAr",
    "AAQAGAAAACUAAAAAAAAAIAAEACoAAADlFAAAEwAAACsABAAYAAAALQAAAAEAAAArAAQABgAAADUAAAAgAAAAKwAEAAYA",
    "AAA2AAAAAQAAACwABgAJAAAANwAAADUAAAA2AAAANgAAADYABQACAAAABAAAAAAAAAADAAAA+AACAAUAAABBAAUADQAA",
    "AA4AAAALAAAADAAAAD0ABAAGAAAADwAAAA4AAABBAAUAGgAAABsAAAAXAAAAGQAAAD0ABAAGAAAAHAAAABsAAACwAAUA",
    "HQAAAB4AAAAPAAAAHAAAAPcAAwAgAAAAAAAAAPoABAAeAAAAHwAAACAAAAD4AAIAHwAAAEEABQAiAAAAIwAAABcAAAAh",
    "AAAAPQAEABEAAAAkAAAAIwAAAEEABQAiAAAAJwAAABcAAAAlAAAAPQAEABEAAAAoAAAAJwAAAEEABgAqAAAAKwAAACgA",
    "AAAlAAAADwAAAD0ABgATAAAALAAAACsAAAACAAAABAAAAEEABQAiAAAALgAAABcAAAAtAAAAPQAEABEAAAAvAAAALgAA",
    "AEEABgAqAAAAMQAAAC8AAAAlAAAADwAAAD0ABgATAAAAMgAAADEAAAACAAAABAAAAIEABQATAAAAMwAAACwAAAAyAAAA",
    "QQAGACoAAAA0AAAAJAAAACUAAAAPAAAAPgAFADQAAAAzAAAAAgAAAAQAAAD5AAIAIAAAAPgAAgAgAAAA/QABADgAAQA=",
  ].join(""),
);

export const adderRecipe = { name: "adder", spirv };

/** Appends y = a + b of the first `count` floats. */
export function appendSum(
  program: Program,
  { a, b, y }: Readonly<Record<"a" | "b" | "y", BufferSlice>>,
  options: { count?: number; label?: string; groups?: Groups } = {},
): void {
  const { count = 4, label = "sum", groups = [Math.ceil(count / 32)] } = options;
  const pushConstants = new Uint8Array(28);
  const view = new DataView(pushConstants.buffer);
  [a, b, y].forEach((slice, i) => view.setBigUint64(8 * i, addressOf(slice), true));
  view.setUint32(24, count, true);
  const pipeline = testGpu().pipelines.get(adderRecipe);
  program.dispatch({ pipeline, pushConstants, groups, label, reads: [a, b], writes: [y] });
}
