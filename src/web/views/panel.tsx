/** The settings beside a conversation: what the model is told, and how it chooses its words. */
import { toolsProblem } from "../prompt.ts";
import { change, samplingParameters, settings, type Thinking } from "../settings.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";
import { IconButton } from "./icons.tsx";
import { Meter } from "./meter.tsx";

export function Panel({ onClose }: { readonly onClose: () => void }) {
  return (
    <aside class="panel" aria-label="Settings">
      <header>
        <h2>Settings</h2>
        <IconButton name="close" label="Close the settings" keys="Alt S" onClick={onClose} />
      </header>
      <div class="fields">
        <SystemPrompt />
        <SamplingFields />
        <Tools />
        <section>
          <h3>Server</h3>
          <Meter />
          <Key />
        </section>
      </div>
    </aside>
  );
}

function SystemPrompt() {
  const { chats } = usePage();
  const current = useValue(chats.current);
  useValue(chats.conversations);
  const { system: initial } = useValue(settings);
  const conversation = chats.conversation(current);
  const write = (system: string) => {
    if (conversation === undefined) change({ system });
    else void chats.amend(conversation.id, { system });
  };
  return (
    <section>
      <label class="field">
        <span>System prompt</span>
        <textarea
          rows={3}
          class="grows"
          aria-describedby="system-scope"
          placeholder="Who the model is, and how it answers"
          value={conversation === undefined ? initial : conversation.system}
          onInput={(event) => write(event.currentTarget.value)}
        />
      </label>
      <p class="note" id="system-scope">
        {conversation === undefined
          ? "For every conversation that begins from now on."
          : "For this conversation, from the next answer on."}
      </p>
    </section>
  );
}

function SamplingFields() {
  const { monitor } = usePage();
  const { sampling, thinking } = useValue(settings);
  const { sampling: defaults } = useValue(monitor.properties);
  const isChanged = Object.keys(sampling).length > 0 || thinking !== "auto";
  return (
    <section>
      <header>
        <h3>Sampling</h3>
        <button
          type="button"
          class="button quiet"
          disabled={!isChanged}
          onClick={() => change({ sampling: {}, thinking: "auto" })}
        >
          Reset
        </button>
      </header>
      {samplingParameters.map(({ name, label, min, max, step }) => (
        <label class="line" key={name}>
          <span>{label}</span>
          <input
            type="number"
            inputMode="decimal"
            name={name}
            min={min}
            max={max}
            step={step}
            placeholder={String(defaults[name] ?? "server's")}
            value={sampling[name] ?? ""}
            onChange={(event) => {
              const { valueAsNumber: value } = event.currentTarget;
              const { [name]: _, ...others } = sampling;
              const kept = Math.min(max, Math.max(min, value));
              change({ sampling: Number.isNaN(value) ? others : { ...others, [name]: kept } });
            }}
          />
        </label>
      ))}
      <label class="line">
        <span>Thinking</span>
        <select
          value={thinking}
          onChange={(event) => change({ thinking: event.currentTarget.value as Thinking })}
        >
          <option value="auto">auto</option>
          <option value="on">on</option>
          <option value="off">off</option>
        </select>
      </label>
    </section>
  );
}

function Tools() {
  const { tools } = useValue(settings);
  const problem = toolsProblem(tools);
  return (
    <details class="fold" open={tools !== ""}>
      <summary>Tools</summary>
      <div class="field">
        <textarea
          rows={3}
          class="grows mono"
          aria-label="Tools"
          spellcheck={false}
          aria-invalid={problem !== undefined}
          aria-describedby="tools-note"
          placeholder={'[{"type": "function", "function": {…}}]'}
          value={tools}
          onInput={(event) => change({ tools: event.currentTarget.value })}
        />
      </div>
      <p class={problem === undefined ? "note" : "note problem"} id="tools-note">
        {problem ?? "A JSON list. When the model calls one, you give the result."}
      </p>
    </details>
  );
}

/** Kept in this browser. */
function Key() {
  const { monitor } = usePage();
  const { apiKey } = useValue(settings);
  const { state } = useValue(monitor.server);
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      <label class="line">
        <span>Key</span>
        <input
          id="api-key"
          type="password"
          autocomplete="off"
          placeholder={state === "locked" ? "wanted" : "none"}
          value={apiKey}
          onChange={(event) => {
            change({ apiKey: event.currentTarget.value.trim() });
            monitor.unlock();
          }}
        />
      </label>
    </form>
  );
}
