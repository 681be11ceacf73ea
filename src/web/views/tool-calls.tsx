/** The tools that an answer calls: what for, with what, and the result, which the user may give. */
import { useState } from "preact/hooks";
import type { Message, ToolCall } from "../conversation.ts";
import { renderCode } from "../markdown.ts";
import { usePage } from "./context.ts";

export function ToolCalls(props: {
  readonly message: Message;
  /** By the calls' ids. */
  readonly results: ReadonlyMap<string, Message>;
  /** The conversation waits for the results. */
  readonly isWaiting: boolean;
}) {
  const { message, results, isWaiting } = props;
  const { chats } = usePage();
  const [given, setGiven] = useState<ReadonlyMap<string, string>>(new Map());
  const calls = message.toolCalls ?? [];
  const submit = (event: Event) => {
    event.preventDefault();
    const all = calls.map(({ id }) => [id, given.get(id) ?? ""] as const);
    void chats.answerTools(message, new Map(all));
  };
  return (
    <form class="tool-calls" onSubmit={submit}>
      {calls.map((call) => (
        <section key={call.id} class="tool-call" aria-label={`Tool call ${call.name}`}>
          <h3>
            <span class="tool-kind">calls</span> {call.name}
          </h3>
          <Code text={pretty(call)} />
          <Result
            result={results.get(call.id)?.content}
            isWaiting={isWaiting}
            name={call.name}
            onInput={(text) => setGiven(new Map(given).set(call.id, text))}
          />
        </section>
      ))}
      {isWaiting && (
        <button type="submit" class="button">
          Send {calls.length === 1 ? "the result" : "the results"}
        </button>
      )}
    </form>
  );
}

function Result(props: {
  readonly result: string | undefined;
  readonly isWaiting: boolean;
  readonly name: string;
  readonly onInput: (text: string) => void;
}) {
  const { result, isWaiting, name, onInput } = props;
  if (result !== undefined) {
    return (
      <div class="tool-result">
        <h4>gives</h4>
        <Code text={result} />
      </div>
    );
  }
  if (!isWaiting) return null;
  return (
    <label class="field">
      <span>Result of {name}</span>
      <textarea rows={2} onInput={(event) => onInput(event.currentTarget.value)} />
    </label>
  );
}

function Code({ text }: { readonly text: string }) {
  return <div class="prose" dangerouslySetInnerHTML={{ __html: renderCode(text, "json") }} />;
}

/** Indented where it is JSON; as it is while it grows, and where it never becomes any. */
function pretty(call: ToolCall): string {
  try {
    return JSON.stringify(JSON.parse(call.arguments), null, 2);
  } catch {
    return call.arguments;
  }
}
