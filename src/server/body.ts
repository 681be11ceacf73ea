/** Bodies of requests: JSON, and not too much of it. */
import { ApiError, invalid } from "./api-error.ts";

/** Throws an `ApiError` for a body that is too large, no UTF-8 or no JSON. */
export async function readJson(request: Request, bytesMax: number): Promise<unknown> {
  const { headers } = request;
  const type = headers.get("content-type") ?? "application/json";
  // Pages of strangers can send other types without asking first; curl calls everything a form.
  const isBrowser = headers.has("origin") || headers.has("sec-fetch-site");
  if (isBrowser && !/^application\/(json|[\w.+-]+\+json)\b/i.test(type)) {
    throw new ApiError(415, "invalid_request_error", "the body must be application/json");
  }
  const bytes = await readBytes(request, bytesMax);
  if (bytes.length === 0) throw invalid("the body is empty; it must be a JSON object");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid("the body is not UTF-8");
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof RangeError) throw invalid("the body is nested too deeply");
    throw invalid("the body is not JSON");
  }
}

async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > bytesMax) throw tooLarge(bytesMax);
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of request.body ?? []) {
    byteCount += chunk.length;
    if (byteCount > bytesMax) throw tooLarge(bytesMax);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(bytesMax: number): ApiError {
  return new ApiError(413, "invalid_request_error", `the body has more than ${bytesMax} bytes`, {
    code: "body_too_large",
    headers: { connection: "close" },
  });
}
