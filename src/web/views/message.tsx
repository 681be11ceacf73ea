/** One turn of a conversation, with what can be done with it. */
import { memo } from "preact/compat";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Run } from "../chats.ts";
import type { Message } from "../conversation.ts";
import { copyText } from "../files.ts";
import { formatSeconds, formatSpeed } from "../metrics.ts";
import { usePage } from "./context.ts";
import { IconButton } from "./icons.tsx";
import { MarkdownView } from "./markdown-view.tsx";
import { ToolCalls } from "./tool-calls.tsx";

export interface TurnProps {
  readonly message: Message;
  /** The messages between which one can switch here, in order of time. */
  readonly siblings: readonly Message[];
  /** If it is being made. */
  readonly run: Run | undefined;
  readonly isLast: boolean;
  readonly toolResults: ReadonlyMap<string, Message>;
}

/** Turns that have not changed are not drawn again while another one grows. */
export const Turn = memo(
  function Turn(props: TurnProps) {
    return props.message.role === "user" ? <UserTurn {...props} /> : <AssistantTurn {...props} />;
  },
  (a, b) =>
    a.message === b.message &&
    a.run === b.run &&
    a.isLast === b.isLast &&
    a.siblings.length === b.siblings.length &&
    a.toolResults.size === b.toolResults.size,
);

function UserTurn({ message, siblings }: TurnProps) {
  const [isEditing, setEditing] = useState(false);
  const article = useRef<HTMLElement>(null);
  const close = () => {
    setEditing(false);
    article.current?.focus();
  };
  const actions = useActions(message, siblings);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    if (isPlain(event, "e")) setEditing(true);
    else if (!actions.onKey(event)) return;
    event.preventDefault();
  };
  return (
    <article
      ref={article}
      id={`turn-${message.id}`}
      class="turn user"
      tabIndex={-1}
      aria-label="You"
      onKeyDown={onKeyDown}
    >
      <p class="speaker">You</p>
      <div class="said">
        {isEditing ? (
          <Editor message={message} onClose={close} />
        ) : (
          <>
            <Words text={message.content} />
            <footer>
              <Branches siblings={siblings} message={message} />
              <CopyButton text={message.content} />
              <IconButton name="edit" label="Edit" keys="E" onClick={() => setEditing(true)} />
            </footer>
          </>
        )}
      </div>
    </article>
  );
}

/** From here on they get a scroll bar of their own. */
const manyLines = 24;

function Words({ text }: { readonly text: string }) {
  const isLong = text.length > 80 * manyLines || text.split("\n").length > manyLines;
  if (!isLong) return <p class="words">{text}</p>;
  return (
    <p class="words long" tabIndex={0} role="region" aria-label="Your message">
      {text}
    </p>
  );
}

function Editor(props: { readonly message: Message; readonly onClose: () => void }) {
  const { message, onClose } = props;
  const { chats } = usePage();
  const area = useRef<HTMLTextAreaElement>(null);
  // At once, so that what is typed next lands here.
  useLayoutEffect(() => {
    const { current } = area;
    current?.focus();
    current?.setSelectionRange(current.value.length, current.value.length);
  }, []);
  const submit = () => {
    const text = area.current?.value ?? "";
    if (text.trim() === "") return;
    onClose();
    void chats.edit(message, text);
  };
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          onClose();
        } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          submit();
        }
      }}
    >
      <textarea ref={area} class="grows" aria-label="Edit message" defaultValue={message.content} />
      <div class="buttons">
        <button type="submit" class="button primary">
          Send as a branch
        </button>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function AssistantTurn({ message, siblings, run, isLast, toolResults }: TurnProps) {
  const { chats } = usePage();
  const actions = useActions(message, siblings);
  const isGrowing = run !== undefined;
  const { reasoning, toolCalls = [], content } = message;
  const isSilent = isGrowing && content === "" && reasoning === undefined && toolCalls.length === 0;
  const again = () => void chats.regenerate(message);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    if (isPlain(event, "r")) again();
    else if (!actions.onKey(event)) return;
    event.preventDefault();
  };
  const speaker = message.model ?? "zinc";
  return (
    <article
      id={`turn-${message.id}`}
      class="turn assistant"
      tabIndex={-1}
      aria-label={`Answer of ${speaker}`}
      aria-busy={isGrowing}
      onKeyDown={onKeyDown}
    >
      <p class="speaker" title={speaker}>
        {speaker}
      </p>
      <div class="said">
        {reasoning !== undefined && <Reasoning message={message} isGrowing={isGrowing} />}
        {isSilent && <p class="waiting">Reading</p>}
        {content !== "" && <MarkdownView text={content} growing={isGrowing} />}
        {toolCalls.length > 0 && (
          <ToolCalls
            message={message}
            results={toolResults}
            isWaiting={isLast && message.state === "done"}
          />
        )}
        {!isGrowing && <Ending message={message} onAgain={again} />}
        <footer>
          <Branches siblings={siblings} message={message} />
          <Numbers message={message} run={run} />
          {!isGrowing && (
            <>
              <CopyButton text={content} />
              <IconButton name="again" label="Regenerate" keys="R" onClick={again} />
            </>
          )}
        </footer>
      </div>
    </article>
  );
}

function Reasoning(props: { readonly message: Message; readonly isGrowing: boolean }) {
  const { message, isGrowing } = props;
  const isThinking = isGrowing && message.content === "" && message.toolCalls === undefined;
  const seconds = message.reasoningSeconds ?? 0;
  const thought = seconds < 0.1 ? "Thought briefly" : `Thought for ${formatSeconds(seconds)}`;
  return (
    <details class="reasoning" open={isThinking}>
      <summary>{isThinking ? "Thinking" : thought}</summary>
      <MarkdownView text={message.reasoning ?? ""} growing={isThinking} />
    </details>
  );
}

/** Why an answer ended, if not by itself. */
function Ending(props: { readonly message: Message; readonly onAgain: () => void }) {
  const { message, onAgain } = props;
  const { state } = message;
  if (state === "failed") {
    return (
      <div class="failure" role="alert">
        <p>{message.error}</p>
        <button type="button" class="button" onClick={onAgain}>
          Try again
        </button>
      </div>
    );
  }
  if (state === "done") return null;
  const reasons = {
    stopped: "Stopped.",
    cut: "Cut at the limit of tokens.",
    streaming: "Not finished: the page was closed meanwhile, or another tab is at it.",
  };
  return <p class="ending">{reasons[state]}</p>;
}

function Numbers(props: { readonly message: Message; readonly run: Run | undefined }) {
  const { message, run } = props;
  if (run !== undefined) {
    if (run.tokens === 0) return null;
    return (
      <p class="numbers">
        {run.tokens} tokens{run.tokensPerSecond > 0 && ` · ${formatSpeed(run.tokensPerSecond)}`}
      </p>
    );
  }
  const { stats } = message;
  if (stats === undefined) return null;
  return (
    <p class="numbers">
      {stats.tokens} {stats.tokens === 1 ? "token" : "tokens"}
      {stats.tokensPerSecond > 0 && ` · ${formatSpeed(stats.tokensPerSecond)}`}
      <span class="first"> · first after {formatSeconds(stats.firstTokenSeconds)}</span>
    </p>
  );
}

function Branches(props: { readonly message: Message; readonly siblings: readonly Message[] }) {
  const { message, siblings } = props;
  const { chats } = usePage();
  if (siblings.length < 2) return null;
  const index = siblings.findIndex(({ id }) => id === message.id);
  const go = (target: Message | undefined) =>
    target !== undefined && void chats.choose(target).then(() => focusTurn(target.id));
  return (
    <div class="branches" role="group" aria-label="Branches">
      <IconButton
        name="left"
        label="Previous branch"
        keys="←"
        disabled={index === 0}
        onClick={() => go(siblings[index - 1])}
      />
      <span>
        {index + 1}/{siblings.length}
      </span>
      <IconButton
        name="right"
        label="Next branch"
        keys="→"
        disabled={index === siblings.length - 1}
        onClick={() => go(siblings[index + 1])}
      />
    </div>
  );
}

function CopyButton({ text }: { readonly text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    setCopied(await copyText(text));
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <IconButton
      name={isCopied ? "check" : "copy"}
      label={isCopied ? "Copied" : "Copy"}
      keys="C"
      onClick={() => void copy()}
    />
  );
}

/** Keys that every focused turn knows: copy, and the neighbouring branches. */
function useActions(message: Message, siblings: readonly Message[]) {
  const { chats } = usePage();
  const index = siblings.findIndex(({ id }) => id === message.id);
  return {
    onKey(event: KeyboardEvent): boolean {
      const step = isPlain(event, "ArrowLeft") ? -1 : isPlain(event, "ArrowRight") ? 1 : 0;
      const target = step === 0 ? undefined : siblings[index + step];
      if (target !== undefined) void chats.choose(target).then(() => focusTurn(target.id));
      else if (isPlain(event, "c")) void copyText(message.content);
      else return false;
      return true;
    },
  };
}

/** Once it is drawn. */
function focusTurn(id: string): void {
  requestAnimationFrame(() => document.getElementById(`turn-${id}`)?.focus());
}

/** With no key held beside it. */
function isPlain(event: KeyboardEvent, key: string): boolean {
  return event.key === key && !event.ctrlKey && !event.metaKey && !event.altKey;
}
