/** Where the user writes. What is written survives a reload, and a server that is away. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { pathTo } from "../conversation.ts";
import { draftOf, keepDraft } from "../settings.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";
import { Icon } from "./icons.tsx";

export function Composer() {
  const { chats, show } = usePage();
  const current = useValue(chats.current);
  const isRunning = useValue(chats.runs).has(current ?? "");
  const area = useRef<HTMLTextAreaElement>(null);
  const slot = current ?? "new";
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
  const submit = async () => {
    if (text.trim() === "" || isRunning) return;
    write("");
    const sent = chats.send(text);
    show(chats.current.get());
    await sent;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void submit();
    } else if (event.key === "ArrowUp" && text === "") {
      event.preventDefault();
      editLast();
    }
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div class="sheet">
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
