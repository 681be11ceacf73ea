/** The shown path of a conversation, which stays at its end while an answer grows. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { childrenOf, pathTo, type Message } from "../conversation.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";
import { Icon } from "./icons.tsx";
import { Turn } from "./message.tsx";
import { Welcome } from "./welcome.tsx";

/** Pixels from the end within which the reader counts as being at it. */
const nearEnd = 80;

export function Transcript() {
  const { chats } = usePage();
  const current = useValue(chats.current);
  const all = useValue(chats.messages);
  const run = useValue(chats.runs).get(current ?? "");
  useValue(chats.conversations);
  const head = chats.conversation(current)?.head ?? null;
  const messages = chats.messagesOf(current);
  const children = useMemo(() => childrenOf(messages), [all, current]);
  const path = pathTo(messages, head);
  const results = toolResults(path);
  const scroll = useStickyEnd(current, run?.message);
  return (
    <div class="transcript" ref={scroll.ref} onScroll={scroll.onScroll} tabIndex={-1}>
      {path.length === 0 ? (
        <Welcome />
      ) : (
        <h1 class="aloud">{chats.conversation(current)?.title}</h1>
      )}
      <div class="turns">
        {path
          .filter(({ role }) => role !== "tool")
          .map((message) => (
            <Turn
              key={message.id}
              message={message}
              siblings={children.get(message.parent) ?? []}
              run={run?.message === message.id ? run : undefined}
              isLast={message.id === head}
              toolResults={message.toolCalls === undefined ? noResults : results}
            />
          ))}
      </div>
      {!scroll.isAtEnd && (
        <button type="button" class="button to-end" onClick={scroll.toEnd}>
          <Icon name="down" /> Latest
        </button>
      )}
    </div>
  );
}

const noResults: ReadonlyMap<string, Message> = new Map();

function toolResults(path: readonly Message[]): ReadonlyMap<string, Message> {
  return new Map(
    path.flatMap((message) =>
      message.toolCallId === undefined ? [] : [[message.toolCallId, message] as const],
    ),
  );
}

/** Follows the end as long as the reader has not scrolled away from it. */
function useStickyEnd(conversation: string | null, growing: string | undefined) {
  const ref = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = () => {
    follows.current = true;
    setAtEnd(true);
    ref.current?.scrollTo({ top: ref.current.scrollHeight });
  };
  useLayoutEffect(toEnd, [conversation]);
  useLayoutEffect(() => {
    if (growing !== undefined) toEnd();
  }, [growing]);
  useLayoutEffect(() => {
    if (follows.current) ref.current?.scrollTo({ top: ref.current.scrollHeight });
  });
  const onScroll = () => {
    const { current } = ref;
    if (current === null) return;
    const rest = current.scrollHeight - current.scrollTop - current.clientHeight;
    follows.current = rest < nearEnd;
    setAtEnd(follows.current);
  };
  return { ref, isAtEnd, toEnd, onScroll };
}
