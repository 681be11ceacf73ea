/** Line icons on a grid of 16, drawn for this page. */
const paths = {
  plus: "M8 3v10M3 8h10",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h7",
  sliders: "M2.5 5h6M11.5 5h2M2.5 11h2M7.5 11h6M8.5 3v4M4.5 9v4",
  send: "M8 13V3.5M4 7.5l4-4 4 4",
  stop: "M4.5 4.5h7v7h-7z",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  check: "M3 8.5l3.5 3.5L13 4.5",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  edit: "M9.5 4l2.5 2.5L6 12.5l-3 .5.5-3zM11 2.5L13.5 5",
  left: "M10 3.5L5.5 8l4.5 4.5",
  right: "M6 3.5l4.5 4.5L6 12.5",
  down: "M8 3v9.5M4 8.5l4 4 4-4",
  chevron: "M4 6l4 4 4-4",
  close: "M4 4l8 8M12 4l-8 8",
  bin: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  export: "M8 10V2.5M5 5l3-3 3 3M3 9.5v4h10v-4",
  import: "M8 2.5V10M5 7l3 3 3-3M3 9.5v4h10v-4",
  clip: "M12.5 7.5l-4.9 4.9a2.7 2.7 0 0 1-3.8-3.8l5.4-5.4a1.8 1.8 0 0 1 2.6 2.6L6.6 11",
  keyboard: "M1.5 4.5h13v7h-13zM4 7h.5M6.75 7h.5M9.5 7h.5M12 7h.5M5 9.5h6",
  light:
    "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1" +
    "M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  dark: "M13 9.6A5.5 5.5 0 1 1 6.4 3a4.4 4.4 0 0 0 6.6 6.6z",
  system: "M2 3h12v8H2zM6 13.5h4M8 11v2.5",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** A button that shows only an icon; its name is read aloud and shown on hover. */
export function IconButton(props: {
  readonly name: IconName;
  readonly label: string;
  readonly onClick: () => void;
  readonly keys?: string;
  readonly disabled?: boolean;
  readonly pressed?: boolean;
  readonly class?: string;
}) {
  const { name, label, onClick, keys, disabled = false, pressed } = props;
  return (
    <button
      type="button"
      class={`icon-button ${props.class ?? ""}`}
      aria-label={label}
      aria-pressed={pressed}
      title={keys === undefined ? label : `${label} (${keys})`}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={name} />
    </button>
  );
}
