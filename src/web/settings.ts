/** What the user has chosen for all conversations: kept in localStorage, checked when read. */
import { isRecord, parseJson } from "./archive.ts";
import { Value } from "./value.ts";

export type Theme = "system" | "light" | "dark";
export type Thinking = "auto" | "on" | "off";

/** Sampling parameters by the names of the API; one that is absent is the server's. */
export const samplingParameters = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.05 },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.01 },
  { name: "top_k", label: "Top k", min: 0, max: 1000, step: 1 },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01 },
  { name: "repeat_penalty", label: "Repeat penalty", min: 0.5, max: 2, step: 0.05 },
  { name: "max_tokens", label: "Max tokens", min: 1, max: 1_000_000, step: 1 },
  { name: "seed", label: "Seed", min: 0, max: 4_294_967_295, step: 1 },
] as const;

export type SamplingName = (typeof samplingParameters)[number]["name"];
export type Sampling = Readonly<Partial<Record<SamplingName, number>>>;

export interface Settings {
  readonly theme: Theme;
  /** Empty: whichever the server has. */
  readonly model: string;
  /** Of conversations that are begun from now on. */
  readonly system: string;
  readonly sampling: Sampling;
  readonly thinking: Thinking;
  /** A JSON list of tools, as the user wrote it. */
  readonly tools: string;
  readonly apiKey: string;
  readonly isPanelOpen: boolean;
  readonly isSidebarOpen: boolean;
}

const key = "zinc.settings";

export const settings = new Value<Settings>(readSettings(stored(key)));

export function change(some: Partial<Settings>): void {
  settings.update((current) => ({ ...current, ...some }));
  keep(key, JSON.stringify(settings.get()));
}

/** Anything that is not as it should be is as if it were not there. */
export function readSettings(text: string | null): Settings {
  const json = parseJson(text ?? "");
  const from = isRecord(json) ? json : {};
  const sampling = isRecord(from["sampling"]) ? from["sampling"] : {};
  const string = (value: unknown) => (typeof value === "string" ? value : "");
  return {
    theme: oneOf(from["theme"], ["system", "light", "dark"]),
    model: string(from["model"]),
    system: string(from["system"]),
    sampling: Object.fromEntries(
      samplingParameters
        .map(({ name }) => [name, sampling[name]] as const)
        .filter(([, value]) => typeof value === "number" && Number.isFinite(value)),
    ),
    thinking: oneOf(from["thinking"], ["auto", "on", "off"]),
    tools: string(from["tools"]),
    apiKey: string(from["apiKey"]),
    isPanelOpen: from["isPanelOpen"] === true,
    isSidebarOpen: from["isSidebarOpen"] !== false,
  };
}

/** What was being written, by conversation, so that no reload loses it. */
export function draftOf(conversation: string): string {
  return stored(`zinc.draft.${conversation}`) ?? "";
}

export function keepDraft(conversation: string, text: string): void {
  if (text === "") forget(`zinc.draft.${conversation}`);
  else keep(`zinc.draft.${conversation}`, text);
}

function oneOf<T extends string>(value: unknown, known: readonly [T, ...T[]]): T {
  return known.find((one) => one === value) ?? known[0];
}

/** Storage can be forbidden or full; the page goes on without. */
function stored(name: string): string | null {
  try {
    return globalThis.localStorage?.getItem(name) ?? null;
  } catch {
    return null;
  }
}

function keep(name: string, text: string): void {
  try {
    localStorage.setItem(name, text);
  } catch {
    return;
  }
}

function forget(name: string): void {
  try {
    localStorage.removeItem(name);
  } catch {
    return;
  }
}
