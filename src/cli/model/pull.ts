/** `zinc model pull`: downloads a model, or takes over a file of this machine. */
import { existsSync } from "node:fs";
import { UserError } from "../../errors.ts";
import { formatBytes } from "../../math.ts";
import { architectureNames, architectureOf } from "../../model/architectures.ts";
import { openModelFile } from "../../index.ts";
import type { Access } from "../../store/exchange.ts";
import { lookUp } from "../../store/hub.ts";
import { importModel } from "../../store/local-import.ts";
import { nameOfFile, requireModelName } from "../../store/model-name.ts";
import type { ModelStore, StoredModel } from "../../store/model-store.ts";
import type { Placed } from "../../store/placement.ts";
import { pullModel } from "../../store/pull.ts";
import { hubEndpoint, parseReference, type Source } from "../../store/reference.ts";
import { usualTiming } from "../../store/retry.ts";
import { command } from "../command.ts";
import { integer, text, toggle, type Values } from "../flag.ts";
import { modelEnvironment, outputFlags } from "../flags.ts";
import { readTextFile } from "../input.ts";
import { openStore, unknownModel } from "../model-choice.ts";
import { note, setQuiet, warn, writeOut } from "../output.ts";
import { signalExitCode, stopGently, stopSignal } from "../signals.ts";
import { TransferProgress } from "../transfer-progress.ts";
import { chooseActive } from "./use.ts";

const flags = {
  name: text("name", "what to call it (default the listed or the file's name)"),
  use: toggle("make it the active model"),
  force: toggle("fetch it again if it is here, in place of what is here", { alias: "f" }),
  connections: integer("n", "downloads at once, from 1 to 16 (default 4)", { min: 1, max: 16 }),
  tokenFile: text("file", "file with the token of a gated model (default $HF_TOKEN)", {
    completes: "files",
  }),
  ...outputFlags,
} as const;

export const modelPullCommand = command({
  name: "model pull",
  summary: "Download a model, or take over a file of this machine",
  description: `
    MODEL is a name of zinc model list, hf:owner/repo/file.gguf, hf:owner/repo:Q4_K_M, the
    address of a .gguf file on the hub or on any web server, or the path of a file on this
    machine. Of a model that is split into parts, any part means all.

    A download that was interrupted goes on where it ended when the same command is given again.
    Where the hash of a file is known, from zinc's own list or from the hub, the file is
    checked. A model appears under its name only when it is whole.

    A file of this machine stays where it is: zinc keeps a hard link to it, or a copy where
    links are not possible.
  `,
  flags,
  positionals: { MODEL: { description: "name, address or path", completes: "sources" } },
  examples: {
    "zinc model pull qwen3.5-2b --use": "download a model, and use it from now on",
    "zinc model pull hf:Qwen/Qwen3-8B-GGUF:Q8_0": "choose the quantization",
    "zinc model pull https://host/m-00001-of-00003.gguf": "all three parts",
    "zinc model pull ./mine.gguf --name mine": "take over a file",
  },
  environment: {
    ...modelEnvironment,
    HF_TOKEN: "the token of a gated or private model on the hub",
    HF_ENDPOINT: "another server with the layout of the hub",
    HTTPS_PROXY: "the way to the server; NO_PROXY lists what is reached without it",
  },
  exitCodes: {
    1: "no connection, no access, or no room on the disk",
    3: "there is no such file, it is no GGUF, or it arrived damaged",
    130: "it was interrupted with Ctrl+C; the same command goes on",
  },
  async run(values, [given]) {
    setQuiet(values.quiet === true);
    if (given === undefined) {
      throw new UserError("usage", "no model is named", "zinc model list shows the names");
    }
    const store = openStore();
    stopGently();
    try {
      const placed = await bring(store, given, values);
      if (values.use === true) chooseActive(placed.model.name);
      await tell(placed, values);
      return 0;
    } catch (error) {
      if (!stopSignal.aborted) throw error;
      note("interrupted; the same command goes on where this one ended");
      return signalExitCode() ?? 1;
    }
  },
});

async function bring(
  store: ModelStore,
  given: string,
  values: Values<typeof flags>,
): Promise<Placed> {
  const endpoint = hubEndpoint(process.env);
  const reference = parseReference(given, endpoint);
  const nameFor = (usual: string) =>
    values.name === undefined ? usual : requireModelName(values.name);
  using progress = new TransferProgress();
  const place = {
    force: values.force === true,
    signal: stopSignal,
    onWait: () => note("another zinc has this model at work; waiting for it"),
  };
  if (reference.kind === "path") {
    const { path } = reference;
    if (!existsSync(path) && !/[/\\]|\.gguf$/i.test(path)) throw unknownModel(path);
    return await importModel(store, path, nameFor(values.name ?? nameOfFile(path)), {
      ...place,
      onProgress: (doneBytes, totalBytes) => progress.update("copying", doneBytes, totalBytes),
    });
  }
  const retry = {
    timing: usualTiming,
    signal: stopSignal,
    onPause: (reason: string, pauseMs: number) => progress.pause(reason, pauseMs),
  };
  const access = await accessFor(reference.kind === "source" ? reference.source : undefined, {
    endpoint,
    tokenFile: values.tokenFile,
  });
  const source =
    reference.kind === "source"
      ? reference.source
      : await lookUp(reference.repository, endpoint, access, retry);
  const name = nameFor(source.name);
  progress.label = name;
  return await pullModel(store, source, name, {
    ...place,
    ...retry,
    access,
    connections: values.connections ?? 4,
    onProgress: (phase, doneBytes, totalBytes) => progress.update(phase, doneBytes, totalBytes),
  });
}

/**
 * HF_TOKEN is for the hub alone. A token that was named for this download goes to where it comes
 * from.
 */
async function accessFor(
  source: Source | undefined,
  { endpoint, tokenFile }: { readonly endpoint: string; readonly tokenFile: string | undefined },
): Promise<Access> {
  const hub = new URL(endpoint).origin;
  if (tokenFile === undefined) {
    return { token: cleanToken(process.env["HF_TOKEN"] ?? "", "HF_TOKEN"), origins: [hub] };
  }
  const token = cleanToken(await readTextFile(tokenFile), "--token-file");
  if (token === undefined) {
    throw new UserError("usage", `${tokenFile} holds no token`, "write the token into it");
  }
  const own = source?.files.map(({ url }) => new URL(url).origin) ?? [];
  return { token, origins: [hub, ...own] };
}

/** The message never shows what it is about. */
function cleanToken(value: string, name: string): string | undefined {
  const token = value.trim();
  if (/^[\x21-\x7e]*$/.test(token)) return token === "" ? undefined : token;
  throw new UserError("usage", `what ${name} holds is no token`, "copy the token alone into it");
}

async function tell({ model, isNew }: Placed, values: Values<typeof flags>): Promise<void> {
  await warnIfUnsupported(model);
  if (values.json === true) {
    const { name, path, sizeBytes, source = null, files } = model;
    await writeOut(`${JSON.stringify({ name, path, bytes: sizeBytes, source, files, isNew })}\n`);
    return;
  }
  const isChecked = model.files.every(({ sha256 }) => sha256 !== undefined);
  const hash = isChecked ? "sha256 is right" : "no sha256 is known for it";
  const size = formatBytes(model.sizeBytes);
  note(isNew ? `${model.name}: ${size}, ${hash}` : `${model.name} is here already, ${size}`);
  if (values.use === true) note(`${model.name} is used where no model is named`);
}

async function warnIfUnsupported({ path, name }: StoredModel): Promise<void> {
  using file = await openModelFile(path);
  const architecture = architectureOf(file);
  if (!architectureNames.includes(architecture)) {
    warn(`${name} has architecture ${architecture}, which zinc cannot run`);
  }
}
