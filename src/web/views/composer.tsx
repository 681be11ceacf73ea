/** Where the user writes. What is written survives a reload, and a server that is away. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { pathTo } from "../conversation.ts";
import { chooseFiles, readAttachment } from "../files.ts";
import { notify } from "../notices.ts";
import { draftOf, keepDraft } from "../settings.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";
import { Icon, IconButton } from "./icons.tsx";

type Area = RefObject<HTMLTextAreaElement | null>;

export function Composer() {
  const { chats, show } = usePage();
  const current = useValue(chats.current);
  const isRunning = useValue(chats.runs).has(current ?? "");
  const area = useRef<HTMLTextAreaElement>(null);
  const [text, write] = useDraft(current ?? "new", area);
  const attach = useAttachments(area, write);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (text.trim() === "" || isRunning) return;
    write("");
    const sent = chats.send(text);
    show(chats.current.get());
    await sent;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      void submit(event);
    } else if (event.key === "ArrowUp" && text === "") {
      event.preventDefault();
      editLast();
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void attach(files);
  };
  return (
    <form class="composer" onSubmit={(event) => void submit(event)}>
      <div class="sheet">
        <IconButton
          name="clip"
          label="Attach text files"
          onClick={() => void chooseFiles("", true).then(attach)}
        />
        <textarea
          ref={area}
          id="composer"
          class="grows"
          rows={1}
          aria-label="Message"
          placeholder="Write a message"
          enterkeyhint="send"
          value={text}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <RoundButton
          isRunning={isRunning}
          isEmpty={text.trim() === ""}
          onStop={() => chats.stop(current)}
        />
      </div>
      <p class="hint">
        <span class="keys">
          <kbd>Enter</kbd> sends, <kbd>Shift Enter</kbd> breaks the line, <kbd>?</kbd> shows all
          keys
        </span>
        <ContextUse />
      </p>
    </form>
  );
}

/** What is being written in a conversation, and how to change it. */
function useDraft(slot: string, area: Area): [string, (text: string) => void] {
  const [text, setText] = useState(() => draftOf(slot));
  useLayoutEffect(() => {
    setText(draftOf(slot));
    // On a touch screen the keyboard would cover what one came to read.
    if (matchMedia("(pointer: fine)").matches) area.current?.focus();
  }, [slot]);
  const write = (next: string) => {
    setText(next);
    keepDraft(slot, next);
  };
  return [text, write];
}

/** How to put files behind what is written; they may also be dropped anywhere on the page. */
function useAttachments(area: Area, write: (text: string) => void) {
  const attach = async (files: readonly File[]) => {
    const parts: string[] = [];
    for (const file of files) {
      try {
        parts.push(await readAttachment(file));
      } catch (error) {
        notify(error instanceof Error ? error.message : String(error));
      }
    }
    const { current } = area;
    const written = current?.value.trimEnd() ?? "";
    if (parts.length > 0) write([written, ...parts].filter(Boolean).join("\n\n"));
    current?.focus();
  };
  useEffect(() => {
    const allow = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      void attach(files);
    };
    addEventListener("dragover", allow);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", allow);
      removeEventListener("drop", drop);
    };
  });
  return attach;
}

/** Sends; while an answer is being made, stops it. */
function RoundButton(props: {
  readonly isRunning: boolean;
  readonly isEmpty: boolean;
  readonly onStop: () => void;
}) {
  if (props.isRunning) {
    return (
      <button
        type="button"
        class="round stop"
        aria-label="Stop"
        title="Stop (Esc)"
        onClick={props.onStop}
      >
        <Icon name="stop" />
      </button>
    );
  }
  return (
    <button
      type="submit"
      class="round"
      aria-label="Send"
      title="Send (Enter)"
      disabled={props.isEmpty}
    >
      <Icon name="send" />
    </button>
  );
}

/** How much of the context the last answer has left. */
function ContextUse() {
  const { chats, monitor } = usePage();
  const current = useValue(chats.current);
  useValue(chats.messages);
  const { contextTokens } = useValue(monitor.properties);
  const head = chats.conversation(current)?.head ?? null;
  const last = pathTo(chats.messagesOf(current), head).findLast(
    ({ stats }) => stats?.promptTokens !== undefined,
  );
  if (last?.stats?.promptTokens === undefined) return null;
  const used = (last.stats.promptTokens + last.stats.tokens).toLocaleString("en");
  return (
    <span class="numbers">
      {used}
      {contextTokens !== undefined && ` of ${contextTokens.toLocaleString("en")}`} tokens
    </span>
  );
}

/** Opens the user's last turn. */
function editLast(): void {
  const edits = document.querySelectorAll<HTMLElement>(".turn.user [aria-label='Edit']");
  edits[edits.length - 1]?.click();
}
