/** Which model answers: the server's list, and how far the one that is being loaded has come. */
import type { TargetedToggleEvent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Model, Server } from "../monitor.ts";
import { change, settings } from "../settings.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";
import { Icon } from "./icons.tsx";

const words: Readonly<Record<Server["state"], string>> = {
  unknown: "Looking for the server",
  ready: "Ready",
  loading: "Loading",
  busy: "The server takes no requests now",
  unreachable: "The server does not answer",
  locked: "The server wants a key",
};

export function ModelPicker() {
  const { monitor } = usePage();
  const server = useValue(monitor.server);
  const models = useValue(monitor.models);
  const chosen = useValue(settings).model;
  const popover = useRef<HTMLDivElement>(null);
  const current =
    models.find(({ id }) => id === chosen) ?? models.find(({ isLoaded }) => isLoaded) ?? models[0];
  const choose = (model: Model) => {
    change({ model: model.id });
    // At once: it takes its time, and the question may be ready when it is over.
    if (model.isLoaded === false) void monitor.load(model.id);
    popover.current?.hidePopover();
  };
  useEffect(() => {
    // It was opened before there was anything to choose.
    if (document.activeElement === popover.current) focusModels();
  }, [models]);
  const { progress } = server;
  const percent = progress === undefined ? undefined : Math.round(progress * 100);
  const state = percent === undefined ? words[server.state] : `Loading, ${percent} %`;
  return (
    <div class="picker">
      <button
        type="button"
        class="button quiet model"
        popovertarget="models"
        aria-label={`Model: ${current?.id ?? "none"}. ${state}.`}
        title={state}
      >
        <span class={`lamp ${server.state}`} />
        <span class="model-name">{current?.id ?? words[server.state]}</span>
        {server.state === "loading" && current !== undefined && (
          <span class="numbers">{percent === undefined ? "loading" : `${percent} %`}</span>
        )}
        <Icon name="chevron" />
      </button>
      {server.state === "loading" && <Progress value={progress} />}
      <div
        ref={popover}
        id="models"
        popover="auto"
        class="popover"
        tabIndex={-1}
        onToggle={enterModels}
        onKeyDown={moveFocus}
      >
        <p class="state">
          <span class={`lamp ${server.state}`} /> {state}
        </p>
        <div role="radiogroup" aria-label="Model">
          {models.map((model) => (
            <button
              key={model.id}
              type="button"
              role="radio"
              aria-checked={model.id === current?.id}
              onClick={() => choose(model)}
            >
              <span class="model-name">{model.id}</span>
              <span class="numbers">{factsOf(model).join(" · ")}</span>
              {model.id === current?.id && <Icon name="check" />}
            </button>
          ))}
        </div>
      </div>
    </div>
  );
}

function Progress({ value }: { readonly value: number | undefined }) {
  return value === undefined ? (
    <progress class="load" aria-label="The model is being loaded" />
  ) : (
    <progress class="load" aria-label="The model is being loaded" value={value} max={1} />
  );
}

function factsOf({ architecture, contextTokens }: Model): string[] {
  return [
    ...(architecture === undefined ? [] : [architecture]),
    ...(contextTokens === undefined ? [] : [`${contextTokens.toLocaleString("en")} tokens`]),
  ];
}

function focusModels(): void {
  const list = document.getElementById("models");
  (
    list?.querySelector<HTMLElement>("[aria-checked=true]") ??
    list?.querySelector("button") ??
    list
  )?.focus();
}

/** When the list hears that it is open, which is late: the first arrow may have been pressed. */
function enterModels({ newState, currentTarget }: TargetedToggleEvent<HTMLElement>): void {
  if (newState === "open" && !currentTarget.contains(document.activeElement)) focusModels();
}

/** Opens the list, or closes it. */
export function toggleModels(): void {
  // At once: the event comes later than the next key may.
  if (document.getElementById("models")?.togglePopover() === true) focusModels();
}

/** Arrows go from one model to the next. */
function moveFocus(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  const index = buttons.findIndex((button) => button === document.activeElement);
  buttons[(index + step + buttons.length) % buttons.length]?.focus();
}
