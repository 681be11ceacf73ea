/** What every view needs: the conversations, and the watch on the server. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Chats } from "../chats.ts";
import type { Monitor } from "../monitor.ts";

export interface Page {
  readonly chats: Chats;
  readonly monitor: Monitor;
  /** Shows a conversation and writes it into the address. */
  readonly show: (id: string | null) => void;
}

export const PageContext = createContext<Page | undefined>(undefined);

export function usePage(): Page {
  const page = useContext(PageContext);
  if (page === undefined) throw new Error("a view outside of the page");
  return page;
}
