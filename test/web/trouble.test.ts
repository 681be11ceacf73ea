/** What the page does when things go wrong, or arrive in the less common shapes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import {
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

describe.skipIf(chromiumPath === undefined)("the page", () => {
  let browser: Browser;
  let fixture: Fixture;
  let visitor: Visit;
  let page: Page;

  beforeAll(async () => {
    browser = await launch();
    fixture = startFixture();
    visitor = await visit(browser, fixture.url, { viewport: { width: 1200, height: 800 } });
    page = visitor.page;
  });
  afterAll(async () => {
    await browser.close();
    await fixture.stop();
  });
  beforeEach(async () => {
    fixture.requests.length = 0;
    visitor.errors.length = 0;
    await page.evaluate(() => localStorage.clear());
    await page.goto(fixture.url);
    await page.waitForSelector("#composer");
  });

  const lastAnswer = () => page.locator(".turn.assistant").last();
  const errorsBesideRefusals = () =>
    visitor.errors.filter((text) => !text.startsWith("Failed to load resource"));

  test("folds what the model thought, and counts it", async () => {
    await ask(page, "think about it");
    const fold = lastAnswer().locator(".reasoning");
    expect(await fold.getAttribute("open")).toBeNull();
    expect(await fold.locator("summary").innerText()).toStartWith("Thought ");
    await fold.locator("summary").click();
    expect(await fold.locator(".prose").innerText()).toBe("The user wants to know. So I weigh it.");
    await ask(page, "and now");
    expect(fixture.requests[1]?.messages[1]).toEqual({ role: "assistant", content: "It is so." });
  });

  test("shows a tool's call, takes its result, and goes on", async () => {
    await ask(page, "tool for the weather");
    const call = lastAnswer().getByLabel("Tool call weather");
    expect(await call.locator("code").innerText()).toBe('{\n  "city": "Essen",\n  "days": 2\n}');
    await call.getByLabel("Result of weather").fill("raining");
    await lastAnswer().getByText("Send the result").click();
    await page.getByText("It is raining there.").first().waitFor();
    expect(fixture.requests[1]?.messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: "",
        tool_calls: [
          {
            id: "call_7",
            type: "function",
            function: { name: "weather", arguments: '{"city":"Essen","days":2}' },
          },
        ],
      },
      { role: "tool", content: "raining", tool_call_id: "call_7" },
    ]);
  });

  test("shows what a model writes and runs nothing of it", async () => {
    await ask(page, "markdown please");
    const prose = lastAnswer().locator(".prose");
    expect(await prose.locator("script, img").count()).toBe(0);
    expect(await prose.innerText()).toContain("<script>alert(1)</script>");
    expect(await prose.getByText("a map").getAttribute("href")).toBe("https://example.org/map.png");
    expect(await prose.locator(".hljs-keyword").first().innerText()).toBe("def");
    expect(await prose.locator("td").nth(1).getAttribute("class")).toBe("to-right");
    await prose.getByText("Copy").click();
    await prose.getByText("Copied").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toStartWith("def corrode(layer: float");
    expect(visitor.errors).toEqual([]);
    expect(visitor.foreign).toEqual([]);
  });

  test("repeats the server's own words when it refuses, and tries again", async () => {
    await ask(page, "refuse this");
    expect(await page.getByRole("alert").locator("p").innerText()).toBe(
      "roles must alternate: message 3 is of user again",
    );
    await page.getByText("Try again").click();
    await eventually(() => fixture.requests.length === 2);
    await answered(page);
    expect(errorsBesideRefusals()).toEqual([]);
  });

  test.each([
    ["break it", "Half of the", "The connection ended before the answer did."],
    ["fault now", "Some words", "the device was lost"],
  ])("keeps what came before %p went wrong", async (said, kept, reason) => {
    await ask(page, said);
    await page.getByText(reason).waitFor();
    await page.reload();
    await lastAnswer().waitFor();
    expect(await lastAnswer().locator(".prose").innerText()).toBe(kept);
    expect(await page.getByRole("alert").locator("p").innerText()).toBe(reason);
  });

  test("says that an answer was cut at the limit", async () => {
    await ask(page, "cut this");
    await page.getByText("Cut at the limit of tokens.").waitFor();
  });

  test("keeps an answer that was being made when the page was closed", async () => {
    await say(page, "slow count");
    await lastAnswer().getByText("one two").waitFor();
    await Bun.sleep(1300);
    await page.reload();
    await page.getByText("Not finished").waitFor();
    expect(await lastAnswer().locator(".prose").innerText()).toStartWith("one two three");
  });

  test("stays readable without the server, keeps the draft, and says what is wrong", async () => {
    await ask(page, "hello");
    await page.context().setOffline(true);
    await page.fill("#composer", "a thought");
    await page.click(".button.new");
    expect(await page.inputValue("#composer")).toBe("");
    await page.locator(".list .open").first().click();
    expect(await page.inputValue("#composer")).toBe("a thought");
    await page.press("#composer", "Enter");
    await page.getByText("The server does not answer. Is zinc still running?").waitFor();
    expect(await page.locator(".turn.assistant .prose").first().innerText()).toBe(
      "Answer 1 to “hello”.",
    );
    await page.context().setOffline(false);
  });

  test("shows how far a model is loaded", async () => {
    fixture.setLoading(0.42);
    await page.reload();
    await page.getByRole("button", { name: "Model: spark. Loading, 42 %." }).waitFor();
    fixture.setLoading(undefined);
    await page.getByRole("button", { name: "Model: spark. Ready." }).waitFor();
  });

  test("asks for a key where the server wants one", async () => {
    fixture.setKey("secret");
    await page.reload();
    await page.getByRole("button", { name: /The server wants a key/ }).waitFor();
    await page.getByText("it is entered in the settings").waitFor();
    await page.keyboard.press("Alt+KeyS");
    await page.fill("#api-key", "secret");
    await page.press("#api-key", "Tab");
    await page.getByRole("button", { name: "Model: spark. Ready." }).waitFor();
    await ask(page, "hello");
    expect(await lastAnswer().locator(".prose").innerText()).toBe("Answer 1 to “hello”.");
    fixture.setKey(undefined);
  });

  test("lets models be chosen by key that come after their list was opened", async () => {
    const arrival = Promise.withResolvers<void>();
    const isList = (url: URL) => url.pathname === "/v1/models";
    await page.route(isList, async (route) => {
      await arrival.promise;
      await route.continue();
    });
    await page.reload();
    await page.waitForSelector("#composer");
    await page.keyboard.press("Alt+KeyM");
    await page.locator("#models:focus").waitFor();
    arrival.resolve();
    await page.locator("#models [aria-checked=true]:focus").waitFor();
    await page.unroute(isList);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: /^Model: qwen3.5-35b-a3b-ud-q4_k_xl/ }).waitFor();
    await eventually(() => fixture.loads.length === 1);
    fixture.loads.length = 0;
  });

  test("keeps what an arrow found, though the list hears late that it is open", async () => {
    await page.getByRole("button", { name: "Model: spark. Ready." }).waitFor();
    await page.keyboard.press("Alt+KeyM");
    await page.keyboard.press("ArrowDown");
    await page.evaluate(() => {
      const [oldState, newState] = ["closed", "open"];
      const late = new ToggleEvent("toggle", { oldState, newState });
      document.getElementById("models")?.dispatchEvent(late);
    });
    await page.locator("#models [aria-checked=false]:focus").waitFor();
    await page.keyboard.press("Escape");
  });

  test("sends model, system prompt, tools, and only the parameters that are set", async () => {
    await page.getByRole("button", { name: "Model: spark. Ready." }).waitFor();
    await page.keyboard.press("Alt+KeyM");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Alt+KeyS");
    await page.getByLabel("System prompt").fill("Be brief.");
    await page.fill("[name=temperature]", "0");
    await page.fill("[name=top_k]", "20");
    await page.getByText("Tools", { exact: true }).click();
    await page.getByLabel("Tools").fill('[{"type": "function", "function": {"name": "f"}}]');
    await ask(page, "hello");
    // It was let to load the model when that was chosen.
    expect(fixture.loads).toEqual(["qwen3.5-35b-a3b-ud-q4_k_xl"]);
    expect(fixture.requests[0]).toEqual({
      model: "qwen3.5-35b-a3b-ud-q4_k_xl",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "hello" },
      ],
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      top_k: 20,
      tools: [{ type: "function", function: { name: "f" } }],
    });
  });

  test("draws the server's speed and memory", async () => {
    await page.keyboard.press("Alt+KeyS");
    await page.getByRole("img", { name: "Memory of the device: 21 GB" }).waitFor();
    expect(await page.locator(".graph figcaption").first().innerText()).toMatch(/\d tok\/s/);
  });

  test("sends once however often Enter is pressed", async () => {
    await page.fill("#composer", "once");
    await page.evaluate(() => {
      const form = document.querySelector<HTMLFormElement>(".composer");
      form?.requestSubmit();
      form?.requestSubmit();
    });
    await page.press("#composer", "Enter");
    await lastAnswer().getByText("Answer 1").waitFor();
    await answered(page);
    expect(fixture.requests).toHaveLength(1);
  });

  test("is used without a mouse", async () => {
    await page.keyboard.press("Tab");
    await page.focus("#composer");
    await page.keyboard.type("first");
    await page.keyboard.press("Enter");
    await lastAnswer().getByText("Answer 1 to “first”").waitFor();
    await answered(page);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.type("!");
    await page.keyboard.press("Enter");
    await lastAnswer().getByText("“first!”").waitFor();
    await answered(page);
    await page.keyboard.press("Alt+ArrowUp");
    await page.keyboard.press("r");
    await lastAnswer().getByText("Answer 2 to “first!”").waitFor();
    await answered(page);
    await page.keyboard.press("Alt+ArrowUp");
    await page.keyboard.press("ArrowLeft");
    await lastAnswer().getByText("Answer 1 to “first!”").waitFor();
    await page.keyboard.press("Alt+KeyN");
    await page.getByText("What is on your mind?").waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("first");
    await page.keyboard.press("Enter");
    await lastAnswer().waitFor();
    expect(await page.title()).toBe("first · zinc");
  });

  test("shows in one tab what happens in another", async () => {
    const other = await page.context().newPage();
    await other.goto(fixture.url);
    await other.waitForSelector("#composer");
    await ask(page, "hello in two tabs");
    await other.getByTitle("hello in two tabs").click();
    expect(await other.locator(".turn.assistant .prose").innerText()).toBe(
      "Answer 1 to “hello in two tabs”.",
    );
    await other.close();
  });

  test("leaves damaged records aside and shows the rest", async () => {
    await ask(page, "a sound one");
    await page.evaluate(async () => {
      const database = await new Promise<IDBDatabase>((resolve) => {
        const request = indexedDB.open("zinc");
        request.addEventListener("success", () => resolve(request.result));
      });
      const store = database.transaction("conversations", "readwrite").objectStore("conversations");
      localStorage.setItem("zinc.settings", "{not JSON");
      await new Promise((resolve) => {
        store.put({ id: "broken", title: 7 }).addEventListener("success", resolve);
      });
      database.close();
    });
    await page.reload();
    await page.getByText("1 damaged record in the browser's storage is not shown.").waitFor();
    await page.getByTitle("a sound one").waitFor();
  });

  test("says when the browser's storage is full, and goes on", async () => {
    await page.evaluate(() => {
      IDBObjectStore.prototype.put = () => {
        throw new DOMException("no room", "QuotaExceededError");
      };
    });
    await ask(page, "hello");
    await page.getByText("The browser's storage is full").waitFor();
    expect(await lastAnswer().locator(".prose").innerText()).toBe("Answer 1 to “hello”.");
    expect(visitor.errors).toEqual([]);
  });

  test("takes text files into the message, and says which are none", async () => {
    const attach = async (name: string, buffer: Buffer) => {
      const chooser = page.waitForEvent("filechooser");
      await page.click("[aria-label='Attach text files']");
      await (await chooser).setFiles({ name, mimeType: "text/plain", buffer });
    };
    await page.fill("#composer", "What is this?");
    await attach("notes.md", Buffer.from("# Zinc\n```\ncode\n```\n"));
    await eventually(async () => (await page.inputValue("#composer")).length > 20);
    expect(await page.inputValue("#composer")).toBe(
      "What is this?\n\nnotes.md:\n````md\n# Zinc\n```\ncode\n```\n````\n",
    );
    await attach("picture.png", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0]));
    await page.getByText("“picture.png” is no text.").waitFor();
  });

  test("imports nothing from a file of another kind, and says so", async () => {
    const chooser = page.waitForEvent("filechooser");
    await page.click("[aria-label='Import conversations']");
    const buffer = Buffer.from('{"hello": "world"}');
    await (await chooser).setFiles({ name: "x.json", mimeType: "application/json", buffer });
    await page.getByText("Nothing is imported: this file holds no zinc conversations.").waitFor();
  });
});
