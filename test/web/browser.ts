/** Chromium with the page in it, which notes what must not be: errors and foreign requests. */
import { existsSync } from "node:fs";
import axe from "axe-core";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

export const chromiumPath = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
]
  .concat(process.env["ZINC_CHROMIUM"] ?? [])
  .find(existsSync);

export interface Visit {
  readonly page: Page;
  /** Errors of the console and of scripts, and violated policies. */
  readonly errors: string[];
  /** Requests to other origins. */
  readonly foreign: string[];
  close(): Promise<void>;
}

export async function launch(): Promise<Browser> {
  // Containers have no user namespaces for its sandbox; the pages are our own.
  const args = ["--no-sandbox", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: chromiumPath ?? "chromium", args });
}

export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions,
): Promise<Visit> {
  const context = await browser.newContext({
    acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"],
    reducedMotion: "reduce",
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const errors: string[] = [];
  const foreign: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    if (
      !/^(blob|data):/.test(request.url()) &&
      new URL(request.url()).origin !== new URL(url).origin
    )
      foreign.push(request.url());
  });
  await page.goto(url);
  await page.waitForSelector("#composer");
  return { page, errors, foreign, close: () => context.close() };
}

/** What axe finds, as "rule: element". */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { axe: inPage } = globalThis as unknown as { axe: typeof axe };
    const { violations } = await inPage.run(document);
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  });
}

export async function say(page: Page, text: string): Promise<void> {
  await page.fill("#composer", text);
  await page.press("#composer", "Enter");
}

/** Says it and waits until the answer has ended. */
export async function ask(page: Page, text: string): Promise<void> {
  const before = await page.locator(".turn.assistant").count();
  await say(page, text);
  await page.locator(".turn.assistant").nth(before).waitFor();
  await answered(page);
}

export async function answered(page: Page): Promise<void> {
  await page.locator(".round.stop").waitFor({ state: "detached" });
}

export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 100; i++) {
    if (await isSo()) return;
    await Bun.sleep(30);
  }
  throw new Error("it did not become so within three seconds");
}
