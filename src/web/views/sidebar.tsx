/** The conversations: begin, find, open, name, keep and remove them. */
import { useRef, useState } from "preact/hooks";
import { groupsOf, type Conversation } from "../conversation.ts";
import { archiveName, chooseFiles, download } from "../files.ts";
import { notify } from "../notices.ts";
import { change, settings, type Theme } from "../settings.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";
import { Icon, IconButton } from "./icons.tsx";

export function Sidebar(props: { readonly onHelp: () => void; readonly onOpened: () => void }) {
  const { chats, show } = usePage();
  const conversations = useValue(chats.conversations);
  const [sought, setSought] = useState("");
  const found = conversations.filter(({ title }) =>
    title.toLocaleLowerCase().includes(sought.trim().toLocaleLowerCase()),
  );
  const open = (id: string | null) => {
    show(id);
    props.onOpened();
  };
  return (
    <nav class="sidebar" aria-label="Conversations">
      <header>
        <p class="brand" aria-label="zinc">
          <span aria-hidden="true">Zn</span> zinc
        </p>
        <button type="button" class="button new" title="Alt N" onClick={() => open(null)}>
          <Icon name="plus" /> New conversation
        </button>
        <input
          id="search"
          type="search"
          class="search"
          placeholder="Find"
          aria-label="Find a conversation"
          title="Ctrl K"
          value={sought}
          onInput={(event) => setSought(event.currentTarget.value)}
          onKeyDown={(event) => {
            const [first] = found;
            if (event.key === "Enter" && first !== undefined) open(first.id);
          }}
        />
      </header>
      <div class="list">
        {groupsOf(found, new Date()).map(([title, group]) => (
          <section key={title}>
            <h2>{title}</h2>
            <ul>
              {group.map((conversation) => (
                <Row key={conversation.id} conversation={conversation} onOpen={open} />
              ))}
            </ul>
          </section>
        ))}
        {found.length === 0 && (
          <p class="nothing">
            {conversations.length === 0
              ? "What you talk about is listed here."
              : "None is called so."}
          </p>
        )}
      </div>
      <Foot onHelp={props.onHelp} />
    </nav>
  );
}

function Row(props: {
  readonly conversation: Conversation;
  readonly onOpen: (id: string) => void;
}) {
  const { conversation, onOpen } = props;
  const { chats } = usePage();
  const isCurrent = useValue(chats.current) === conversation.id;
  const isRunning = useValue(chats.runs).has(conversation.id);
  const [isNaming, setNaming] = useState(false);
  if (isNaming) return <NameField conversation={conversation} onClose={() => setNaming(false)} />;
  return (
    <li class={isCurrent ? "current" : ""}>
      <button
        type="button"
        class="open"
        aria-current={isCurrent ? "page" : undefined}
        title={conversation.title}
        onClick={() => onOpen(conversation.id)}
        onDblClick={() => setNaming(true)}
        onKeyDown={(event) => {
          if (event.key === "F2") setNaming(true);
          if (event.key === "Delete") void remove(conversation);
        }}
      >
        {isRunning && <span class="dot" role="img" aria-label="Answering" />}
        <span>{conversation.title}</span>
      </button>
      <span class="tools">
        <IconButton name="edit" label="Rename" keys="F2" onClick={() => setNaming(true)} />
        <IconButton name="export" label="Export" onClick={() => void save(conversation)} />
        <IconButton
          name="bin"
          label="Delete"
          keys="Del"
          onClick={() => void remove(conversation)}
        />
      </span>
    </li>
  );

  async function save({ id, title }: Conversation): Promise<void> {
    download(archiveName(title, new Date()), await chats.export(id));
  }

  async function remove({ id, title }: Conversation): Promise<void> {
    const undo = await chats.remove(id);
    notify(`“${title}” is deleted.`, { label: "Undo", run: () => void undo() });
  }
}

function NameField(props: { readonly conversation: Conversation; readonly onClose: () => void }) {
  const { conversation, onClose } = props;
  const { chats } = usePage();
  const isClosed = useRef(false);
  const close = (title: string | undefined) => {
    // Closing takes the focus away, which would close it again.
    if (isClosed.current) return;
    isClosed.current = true;
    if (title !== undefined && title.trim() !== "") {
      void chats.amend(conversation.id, { title: title.trim() });
    }
    onClose();
  };
  return (
    <li>
      <input
        class="name"
        aria-label="Name of the conversation"
        defaultValue={conversation.title}
        ref={(input) => input?.focus()}
        onBlur={(event) => close(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") close(event.currentTarget.value);
          if (event.key !== "Escape") return;
          event.stopPropagation();
          close(undefined);
        }}
      />
    </li>
  );
}

function Foot({ onHelp }: { readonly onHelp: () => void }) {
  const { chats } = usePage();
  const { theme } = useValue(settings);
  const themes: readonly Theme[] = ["system", "light", "dark"];
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
  const saveAll = async () => download(archiveName("zinc", new Date()), await chats.export());
  const load = async () => {
    const [file] = await chooseFiles(".json,application/json", false);
    if (file === undefined) return;
    try {
      const count = await chats.import(await file.text());
      notify(
        count === 1 ? "One conversation is imported." : `${count} conversations are imported.`,
      );
    } catch (error) {
      notify(`Nothing is imported: ${error instanceof Error ? error.message : String(error)}.`);
    }
  };
  return (
    <footer>
      <IconButton name="import" label="Import conversations" onClick={() => void load()} />
      <IconButton name="export" label="Export all conversations" onClick={() => void saveAll()} />
      <span class="space" />
      <IconButton name="keyboard" label="Keys" keys="?" onClick={onHelp} />
      <IconButton
        name={theme}
        label={`Theme: ${theme}`}
        keys="Alt T"
        onClick={() => change({ theme: next })}
      />
    </footer>
  );
}
