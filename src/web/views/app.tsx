/** The page: conversations at the left, one of them in the middle, settings at the right. */
import { useEffect, useState } from "preact/hooks";
import { announcement, dismiss, notices } from "../notices.ts";
import { change, settings } from "../settings.ts";
import { useValue } from "../value.ts";
import { Composer } from "./composer.tsx";
import { usePage } from "./context.ts";
import { Help } from "./help.tsx";
import { IconButton } from "./icons.tsx";
import { useKeys } from "./keys.ts";
import { ModelPicker } from "./model-picker.tsx";
import { Panel } from "./panel.tsx";
import { Sidebar } from "./sidebar.tsx";
import { Transcript } from "./transcript.tsx";

/** Narrower, the list and the settings lie over the conversation, and are closed at first. */
const narrow = "(max-width: 899px)";

export function App() {
  const { isPanelOpen, isSidebarOpen } = useValue(settings);
  const [isNarrow, setNarrow] = useState(() => matchMedia(narrow).matches);
  const [drawer, setDrawer] = useState<"none" | "sidebar" | "panel">("none");
  const [isHelpOpen, setHelpOpen] = useState(false);
  useEffect(() => {
    const query = matchMedia(narrow);
    const follow = () => setNarrow(query.matches);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  const showsSidebar = isNarrow ? drawer === "sidebar" : isSidebarOpen;
  const showsPanel = isNarrow ? drawer === "panel" : isPanelOpen;
  const toggleSidebar = () => {
    if (isNarrow) setDrawer(showsSidebar ? "none" : "sidebar");
    else change({ isSidebarOpen: !isSidebarOpen });
  };
  const togglePanel = () => {
    if (isNarrow) setDrawer(showsPanel ? "none" : "panel");
    else change({ isPanelOpen: !isPanelOpen });
  };
  const isCovered = isNarrow && drawer !== "none";
  useEffect(() => {
    if (isCovered) document.querySelector<HTMLElement>(".sidebar button, .panel button")?.focus();
  }, [isCovered]);
  useKeys({
    toggleSidebar,
    togglePanel,
    openSidebar: () => showsSidebar || toggleSidebar(),
    help: () => setHelpOpen(true),
    close: () => setDrawer("none"),
    isCovered,
  });
  return (
    <div class={`app ${showsSidebar ? "with-sidebar" : ""} ${showsPanel ? "with-panel" : ""}`}>
      <a class="skip" href="#composer" onClick={toComposer}>
        To the message field
      </a>
      {showsSidebar && (
        <Sidebar onHelp={() => setHelpOpen(true)} onOpened={() => setDrawer("none")} />
      )}
      <main inert={isCovered}>
        <Bar
          showsSidebar={showsSidebar}
          showsPanel={showsPanel}
          onSidebar={toggleSidebar}
          onPanel={togglePanel}
        />
        <Transcript />
        <Composer />
      </main>
      {showsPanel && <Panel onClose={togglePanel} />}
      {isCovered && <div class="scrim" onClick={() => setDrawer("none")} />}
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
      <Notices />
    </div>
  );
}

function Bar(props: {
  readonly showsSidebar: boolean;
  readonly showsPanel: boolean;
  readonly onSidebar: () => void;
  readonly onPanel: () => void;
}) {
  const { show } = usePage();
  return (
    <header class="bar">
      <IconButton
        name="menu"
        label="Conversations"
        keys="Alt B"
        pressed={props.showsSidebar}
        onClick={props.onSidebar}
      />
      <ModelPicker />
      <span class="space" />
      <IconButton name="plus" label="New conversation" keys="Alt N" onClick={() => show(null)} />
      <IconButton
        name="sliders"
        label="Settings"
        keys="Alt S"
        pressed={props.showsPanel}
        onClick={props.onPanel}
      />
    </header>
  );
}

/** The address holds the conversation, not the place in the page. */
function toComposer(event: Event): void {
  event.preventDefault();
  document.getElementById("composer")?.focus();
}

function Notices() {
  const shown = useValue(notices);
  const aloud = useValue(announcement);
  return (
    <>
      <div class="notices" role="status">
        {shown.map(({ id, text, action }) => (
          <p key={id} class="notice">
            <span>{text}</span>
            {action !== undefined && (
              <button
                type="button"
                class="button quiet"
                onClick={() => {
                  action.run();
                  dismiss(id);
                }}
              >
                {action.label}
              </button>
            )}
            <IconButton name="close" label="Dismiss" onClick={() => dismiss(id)} />
          </p>
        ))}
      </div>
      <div class="aloud" aria-live="polite">
        {aloud}
      </div>
    </>
  );
}
