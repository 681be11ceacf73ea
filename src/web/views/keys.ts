/** The keys that work everywhere on the page. */
import { useLayoutEffect } from "preact/hooks";
import { change, settings } from "../settings.ts";
import { usePage } from "./context.ts";
import { toggleModels } from "./model-picker.tsx";

export interface KeyActions {
  readonly toggleSidebar: () => void;
  readonly togglePanel: () => void;
  readonly openSidebar: () => void;
  readonly help: () => void;
  readonly close: () => void;
  /** A drawer lies over the conversation. */
  readonly isCovered: boolean;
}

export function useKeys(actions: KeyActions): void {
  const { chats, show } = usePage();
  // With what is seen, not after it: the first key may come at once.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const action = actionOf(event);
      if (action === undefined || event.defaultPrevented) return;
      event.preventDefault();
      action();
    };
    const escape = () => (actions.isCovered ? actions.close() : chats.stop(chats.current.get()));
    const actionOf = (event: KeyboardEvent): (() => void) | undefined => {
      if (document.querySelector("dialog[open]") !== null) return undefined;
      if (event.altKey && !event.ctrlKey && !event.metaKey) return altActions[event.code];
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        return () => {
          actions.openSidebar();
          requestAnimationFrame(() => document.getElementById("search")?.focus());
        };
      }
      if (event.key === "Escape" && !isPopoverOpen()) return escape;
      const pages = { PageUp: -1, PageDown: 1 }[event.key];
      if (pages !== undefined && !canScroll(event.target)) return () => turnPages(pages);
      if (isWriting(event.target) || event.ctrlKey || event.metaKey) return undefined;
      if (event.key === "/") return () => document.getElementById("composer")?.focus();
      return event.key === "?" ? actions.help : undefined;
    };
    // By place on the keyboard: with Alt held, some layouts write other letters.
    const altActions: Readonly<Record<string, () => void>> = {
      KeyN: () => show(null),
      KeyB: actions.toggleSidebar,
      KeyS: actions.togglePanel,
      KeyM: toggleModels,
      KeyT: nextTheme,
      ArrowUp: () => moveTurn(-1),
      ArrowDown: () => moveTurn(1),
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  });
}

function nextTheme(): void {
  const following = { system: "light", light: "dark", dark: "system" } as const;
  change({ theme: following[settings.get().theme] });
}

/** What is said is scrolled, wherever the focus is. */
function turnPages(count: number): void {
  const transcript = document.querySelector(".transcript");
  transcript?.scrollBy({ top: count * 0.9 * transcript.clientHeight });
}

/** Has more in it than it shows, and no conversation around it. */
function canScroll(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.scrollHeight > target.clientHeight + 1;
}

function isPopoverOpen(): boolean {
  return document.querySelector("[popover]:popover-open") !== null;
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select");
}

/** From the last turn upwards if none has the focus; below the last one is the message field. */
function moveTurn(step: 1 | -1): void {
  const turns = [...document.querySelectorAll<HTMLElement>(".turn")];
  const focused = turns.findIndex((turn) => turn.contains(document.activeElement));
  const next = focused < 0 ? (step < 0 ? turns.length - 1 : turns.length) : focused + step;
  const target = turns[Math.max(0, next)] ?? document.getElementById("composer");
  target?.focus();
  target?.scrollIntoView({ block: "nearest" });
}
