/**
 * What a visitor does on a phone and at a desk, in Chromium, in one sitting: no error, no request
 * to elsewhere, nothing that axe objects to.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import {
  accessibilityProblems,
  answered,
  ask,
  chromiumPath,
  eventually,
  launch,
  say,
  visit,
  type Visit,
} from "./browser.ts";
import { startFixture, type Fixture } from "./fixture.ts";

test("Chromium is there, as the set-up script installs it for tests", () => {
  expect(chromiumPath !== undefined || process.env["CI"] === undefined).toBe(true);
});

let browser: Browser | undefined;
afterAll(async () => browser?.close());

const screens = [
  { width: 390, height: 844, isMobile: true },
  { width: 1440, height: 900, isMobile: false },
];

for (const { width, height, isMobile } of screens) {
  describe.skipIf(chromiumPath === undefined)(`at ${width} pixels, a visitor`, () => {
    let fixture: Fixture;
    let visitor: Visit;
    let page: Page;

    beforeAll(async () => {
      fixture = startFixture();
      browser ??= await launch();
      visitor = await visit(browser, fixture.url, {
        viewport: { width, height },
        isMobile,
        hasTouch: isMobile,
        colorScheme: "light",
      });
      page = visitor.page;
    });
    afterAll(async () => {
      await visitor.close();
      await fixture.stop();
    });

    const answers = () => page.locator(".turn.assistant .prose").allInnerTexts();
    const answer = (text: string) =>
      page.locator(".turn.assistant", { hasText: text }).first().waitFor();
    const openList = async () => {
      if (isMobile) await page.click("main [aria-label=Conversations]");
      await page.locator(".sidebar").waitFor();
    };
    const closeList = async () => {
      if (isMobile) await page.keyboard.press("Escape");
    };

    test("makes a conversation, which is named by its first words", async () => {
      await ask(page, "hello there, zinc");
      await ask(page, "markdown please");
      expect((await answers())[0]).toBe("Answer 1 to “hello there, zinc”.");
      expect(await page.title()).toBe("hello there, zinc · zinc");
      expect(await page.locator(".turn.assistant .numbers").first().innerText()).toContain(
        "6 tokens",
      );
      expect(fixture.requests[1]?.messages).toEqual([
        { role: "user", content: "hello there, zinc" },
        { role: "assistant", content: "Answer 1 to “hello there, zinc”." },
        { role: "user", content: "markdown please" },
      ]);
    });

    test("finds it again after a reload", async () => {
      await page.reload();
      await page.locator(".turn.assistant").nth(1).waitFor();
      expect((await answers())[0]).toBe("Answer 1 to “hello there, zinc”.");
      expect(await page.locator(".prose th").allInnerTexts()).toEqual([
        "coating",
        "years",
        "price",
      ]);
    });

    test("stops an answer, keeps what there is, and the server stops too", async () => {
      await say(page, "slow count");
      await page.locator(".turn.assistant").nth(2).getByText("three").waitFor();
      const left = fixture.leftCount();
      if (isMobile) await page.click("[aria-label=Stop]");
      else await page.keyboard.press("Escape");
      await page.getByText("Stopped.").waitFor();
      expect((await answers()).at(-1)).toStartWith("one two three");
      await eventually(() => fixture.leftCount() === left + 1);
    });

    test("regenerates, and goes back to the earlier answer", async () => {
      await page.click("main [aria-label='New conversation']");
      await ask(page, "say it");
      await page.locator(".turn.assistant").hover();
      await page.click("[aria-label=Regenerate]");
      await answer("Answer 2 to “say it”.");
      await answered(page);
      expect(await page.locator(".branches").innerText()).toBe("2/2");
      await page.click("[aria-label='Previous branch']");
      await answer("Answer 1 to “say it”.");
    });

    test("edits a message into a branch of its own", async () => {
      await page.locator(".turn.user").hover();
      await page.click(".turn.user [aria-label=Edit]");
      await page.fill("[aria-label='Edit message']", "say something else");
      await page.getByText("Send as a branch").click();
      await answer("Answer 1 to “say something else”.");
      await answered(page);
      expect(fixture.requests.at(-1)?.messages).toEqual([
        { role: "user", content: "say something else" },
      ]);
      await page.locator(".turn.user").hover();
      await page.click(".turn.user [aria-label='Previous branch']");
      await answer("Answer 2 to “say it”.");
    });

    test("changes the theme, which stays and is there before the first picture", async () => {
      const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await paper();
      await openList();
      await page.click("[aria-label='Theme: system']");
      await page.click("[aria-label='Theme: light']");
      await eventually(async () => (await paper()) !== light);
      const dark = await paper();
      await page.reload({ waitUntil: "commit" });
      await page.waitForSelector("body", { state: "attached" });
      expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
      await page.waitForSelector("#composer");
      expect(await paper()).toBe(dark);
    });

    test("exports, deletes, takes that back, deletes again, and imports", async () => {
      await openList();
      const exported = page.waitForEvent("download");
      await page.click("[aria-label='Export all conversations']");
      const file = await (await exported).path();
      const archive = JSON.parse(readFileSync(file, "utf8"));
      expect(archive).toMatchObject({ format: "zinc-conversations", version: 1 });
      expect(archive.conversations).toHaveLength(2);
      const rows = page.locator(".list li");
      const removeFirst = async () => {
        await rows.first().hover();
        await rows.first().getByLabel("Delete").click();
      };
      await removeFirst();
      await page.getByText("Undo").click();
      await eventually(async () => (await rows.count()) === 2);
      await removeFirst();
      await eventually(async () => (await rows.count()) === 1);
      const chooser = page.waitForEvent("filechooser");
      await page.click("[aria-label='Import conversations']");
      await (await chooser).setFiles(file);
      await page.getByText("2 conversations are imported.").waitFor();
      expect(await page.locator(".list .open").allInnerTexts()).toEqual([
        "say it",
        "hello there, zinc",
      ]);
      await page.locator(".list .open").last().click();
      expect(await page.locator(".turn.user .words").allInnerTexts()).toEqual([
        "hello there, zinc",
        "markdown please",
        "slow count",
      ]);
    });

    test("meets nothing that axe objects to, in the dark and in the light", async () => {
      if (isMobile) expect(await accessibilityProblems(page)).toEqual([]);
      await openList();
      if (!isMobile) expect(await accessibilityProblems(page)).toEqual([]);
      await page.click("[aria-label='Theme: dark']");
      await closeList();
      await page.click("main [aria-label=Settings]");
      await page.locator(".panel").waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.click("[aria-label='Close the settings']");
    });

    test("never has to scroll sideways", async () => {
      const overhang = () =>
        page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
      expect(await overhang()).toBe(0);
    });

    test("has seen no error, and nothing was asked of another server", () => {
      expect(visitor.errors).toEqual([]);
      expect(visitor.foreign).toEqual([]);
      expect(fixture.unknown).toEqual([]);
    });
  });
}
