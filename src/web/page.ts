/**
 * The chat page as the server sends it: files that build.ts has bundled, under a policy that lets
 * the browser run and fetch nothing but what comes from this server.
 */
import { readFileSync } from "node:fs";
import { bundlePath, bundleTable, type PageEntry } from "./bundle.ts";

/** Scripts, styles and fonts of our own alone; HTML only through DOMPurify (trusted types). */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types dompurify",
].join("; ");

const compressible = /^(text|image\/svg|application\/manifest)/;
const compressed = new Map<string, Uint8Array<ArrayBuffer>>();
let bundle: Uint8Array<ArrayBuffer> | undefined;

/** Undefined if the page has no such file, or the request is neither a GET nor a HEAD. */
export function page(request: Request): Response | undefined {
  const { pathname } = new URL(request.url);
  const entry = bundleTable[pathname === "/index.html" ? "/" : pathname];
  if (entry === undefined || (request.method !== "GET" && request.method !== "HEAD")) {
    return undefined;
  }
  const { type, tag } = entry;
  const headers = new Headers({
    "content-type": type,
    // Asked for anew each time, which costs a 304: a new zinc has a new page at once.
    "cache-control": "no-cache",
    "content-security-policy": policy,
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    etag: `"${tag}"`,
    vary: "accept-encoding",
  });
  if (matches(request.headers.get("if-none-match"), tag)) {
    return new Response(null, { status: 304, headers });
  }
  const isCompressed =
    compressible.test(type) && /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  if (isCompressed) headers.set("content-encoding", "gzip");
  const body = isCompressed ? gzipped(pathname, entry) : bytesOf(entry);
  headers.set("content-length", String(body.length));
  return new Response(request.method === "HEAD" ? null : body, { headers });
}

/** Each file is compressed once. */
function gzipped(path: string, entry: PageEntry): Uint8Array<ArrayBuffer> {
  const known = compressed.get(path);
  if (known !== undefined) return known;
  const bytes = Bun.gzipSync(bytesOf(entry));
  compressed.set(path, bytes);
  return bytes;
}

function bytesOf({ offset, size }: PageEntry): Uint8Array<ArrayBuffer> {
  bundle ??= new Uint8Array(readFileSync(bundlePath));
  return bundle.subarray(offset, offset + size);
}

function matches(asked: string | null, tag: string): boolean {
  const tags = asked?.split(",").map((one) => one.trim().replace(/^W\//, "")) ?? [];
  return tags.includes(`"${tag}"`) || tags.includes("*");
}
