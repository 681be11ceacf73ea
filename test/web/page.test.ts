/** How the page is served: types, policy, caching. */
import { describe, expect, test } from "bun:test";
import { page } from "../../src/web/page.ts";

const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  page(new Request(`http://localhost${path}`, { method, headers }));

describe("the page", () => {
  test.each([
    ["/", "text/html; charset=utf-8"],
    ["/index.html", "text/html; charset=utf-8"],
    ["/page.js", "text/javascript; charset=utf-8"],
    ["/early.js", "text/javascript; charset=utf-8"],
    ["/page.css", "text/css; charset=utf-8"],
    ["/icon.svg", "image/svg+xml"],
    ["/fonts/serif-400.woff2", "font/woff2"],
  ])("has %s as %s", (path, type) => {
    const response = get(path);
    expect(response?.status).toBe(200);
    expect(response?.headers.get("content-type")).toBe(type);
    expect(response?.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("has nothing else, and answers nothing but GET and HEAD", () => {
    expect(get("/v1/models")).toBeUndefined();
    expect(get("/../src/web/page.ts")).toBeUndefined();
    expect(get("/constructor")).toBeUndefined();
    expect(get("/", {}, "POST")).toBeUndefined();
  });

  test("lets nothing in from elsewhere and runs nothing inline", async () => {
    const policy = get("/")?.headers.get("content-security-policy") ?? "";
    expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain("unsafe");
    const html = (await get("/")?.text()) ?? "";
    expect(html).not.toMatch(/<script(?![^>]*src=)|<style|\son\w+=|style=|https?:/);
    const css = (await get("/page.css")?.text()) ?? "";
    expect(css.replace(/url\("?\/fonts\/[a-z0-9-]+\.woff2"?\)/g, "")).not.toContain("url(");
  });

  test("is not sent again to who has it", async () => {
    const tag = get("/page.js")?.headers.get("etag") ?? "";
    const again = get("/page.js", { "if-none-match": `"other", W/${tag}` });
    expect(again?.status).toBe(304);
    expect(await again?.text()).toBe("");
    expect(get("/page.js", { "if-none-match": '"other"' })?.status).toBe(200);
  });

  test("is compressed for who understands that", async () => {
    const plain = await get("/page.js")?.bytes();
    const packed = get("/page.js", { "accept-encoding": "gzip, br" });
    expect(packed?.headers.get("content-encoding")).toBe("gzip");
    const bytes = (await packed?.bytes()) ?? new Uint8Array();
    expect(bytes.length).toBeLessThan(130_000);
    expect(Bun.gunzipSync(bytes)).toEqual(plain as never);
    expect(
      get("/fonts/mono-400.woff2", { "accept-encoding": "gzip" })?.headers.has("content-encoding"),
    ).toBe(false);
  });

  test("has no body for HEAD, and tells its length", async () => {
    const head = get("/page.css", {}, "HEAD");
    expect(await head?.text()).toBe("");
    const length = ((await get("/page.css")?.bytes()) ?? []).length;
    expect(head?.headers.get("content-length")).toBe(String(length));
  });
});
