/** All keys, in a dialog. */
import { useEffect, useRef } from "preact/hooks";
import { IconButton } from "./icons.tsx";

const keys: readonly (readonly [string, string])[] = [
  ["Enter", "send"],
  ["Shift Enter", "new line"],
  ["Esc", "stop the answer, or close what is open"],
  ["↑ in an empty field", "edit your last message"],
  ["/", "go to the message field"],
  ["Page ↑, Page ↓", "scroll what was said"],
  ["Alt ↑, Alt ↓", "go from turn to turn"],
  ["E, C, R on a turn", "edit, copy, regenerate"],
  ["←, → on a turn", "go from branch to branch"],
  ["Ctrl K", "find a conversation"],
  ["Alt N", "new conversation"],
  ["Alt M", "choose a model"],
  ["Alt S", "settings"],
  ["Alt B", "list of conversations"],
  ["Alt T", "theme"],
  ["F2, Del in the list", "rename, delete"],
];

export function Help({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={onClose}>
      <header>
        <h2>Keys</h2>
        <IconButton name="close" label="Close" keys="Esc" onClick={() => dialog.current?.close()} />
      </header>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
