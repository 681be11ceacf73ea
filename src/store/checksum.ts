/** SHA-256 of a file of any size. */
import { open } from "node:fs/promises";

/** Large enough for disks, small enough that a signal is noticed at once. */
const chunkBytes = 4 << 20;

export async function sha256Of(
  path: string,
  signal: AbortSignal,
  onProgress: (doneBytes: number) => void,
): Promise<string> {
  await using handle = await open(path, "r");
  const hasher = new Bun.CryptoHasher("sha256");
  const chunk = new Uint8Array(chunkBytes);
  let doneBytes = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(chunk, 0, chunkBytes, doneBytes);
    if (bytesRead === 0) return hasher.digest("hex");
    hasher.update(chunk.subarray(0, bytesRead));
    doneBytes += bytesRead;
    onProgress(doneBytes);
  }
}
