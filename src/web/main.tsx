/** Starts the page in the browser. */
import { render } from "preact";
import { Chats } from "./chats.ts";
import { Monitor } from "./monitor.ts";
import { notify } from "./notices.ts";
import { settings } from "./settings.ts";
import { App } from "./views/app.tsx";
import { PageContext } from "./views/context.ts";

const monitor = new Monitor();
const chats = await Chats.open((problem) => notify(problem));

function show(id: string | null): void {
  const address = id === null ? "#" : `#${id}`;
  if (location.hash !== address && !(id === null && location.hash === "")) {
    history.pushState(null, "", id === null ? location.pathname : address);
  }
  void chats.show(id);
}

function showAddress(): Promise<void> {
  const id = location.hash.slice(1);
  return chats.show(id === "" ? null : id);
}

addEventListener("popstate", () => void showAddress());
chats.current.watch(nameWindow);
chats.conversations.watch(nameWindow);

settings.watch(({ theme }) => {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
});

// An answer that ended is news of the server: perhaps it is gone.
chats.runs.watch((runs) => runs.size === 0 && void monitor.look());
monitor.server.watch(({ state }) => {
  if (state === "locked") notify("The server wants a key; it is entered in the settings (Alt S).");
});

function nameWindow(): void {
  const title = chats.conversation(chats.current.get())?.title;
  document.title = title === undefined ? "zinc" : `${title} · zinc`;
}

await showAddress();
nameWindow();
monitor.start(() => chats.runs.get().size > 0 || document.querySelector(".panel") !== null);
render(
  <PageContext.Provider value={{ chats, monitor, show }}>
    <App />
  </PageContext.Provider>,
  document.body,
);
