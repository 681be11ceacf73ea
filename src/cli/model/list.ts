/** `zinc model list`: the models that are here, and those that zinc knows where to get. */
import { UserError } from "../../errors.ts";
import { formatBytes } from "../../math.ts";
import { configFolder } from "../../paths.ts";
import { readActive } from "../../store/active-model.ts";
import { catalog, catalogEntry } from "../../store/catalog.ts";
import { builtinName } from "../../store/model-name.ts";
import type { ModelStore, PartialModel, StoredModel } from "../../store/model-store.ts";
import { command } from "../command.ts";
import { toggle } from "../flag.ts";
import { deviceFlags, modelEnvironment, outputFlags } from "../flags.ts";
import { openStore } from "../model-choice.ts";
import { note, paint, setQuiet, writeOut } from "../output.ts";
import { Fit, type Verdict } from "./fit.ts";

export const modelListCommand = command({
  name: "model list",
  summary: "List the models that are here, and those that can be pulled by name",
  description: `
    A star marks the active model. Whether a model fits is exact for models that are here and a
    guess from the file's size for others; it counts the memory that is free on the device now.

    It asks no server. The list of names is part of zinc; any other model can be pulled by its
    address. Where the size of a model stands as –, the server tells it when the model is pulled.
  `,
  flags: {
    installed: toggle("only the models that are here"),
    ...deviceFlags,
    ...outputFlags,
  },
  examples: {
    "zinc model list": "everything",
    "zinc model list --installed --json": "the models that are here, for a script",
  },
  environment: modelEnvironment,
  async run({ installed, device, json, quiet }) {
    setQuiet(quiet === true);
    const store = openStore();
    using fit = openFit(device);
    const active = readActive(configFolder()) ?? builtinName;
    const rows = await collect(store, active, fit, installed === true);
    if (json === true) {
      const shown = fit && { name: fit.deviceName, freeBytes: fit.freeBytes };
      const report = { folder: store.folder, active, device: shown ?? null, models: rows };
      await writeOut(`${JSON.stringify(report)}\n`);
      return;
    }
    await writeOut(format(rows));
    if (fit) note(`${fit.deviceName} has ${formatBytes(fit.freeBytes)} free`);
  },
});

/** Without a device the list is still of use; a device that was asked for must be there. */
function openFit(device: string | undefined): Fit | undefined {
  try {
    return Fit.open(device);
  } catch (error) {
    if (!(error instanceof UserError) || device !== undefined) throw error;
    note(`what fits cannot be told: ${error.message}`);
    return undefined;
  }
}

interface Row {
  readonly name: string;
  readonly title: string | null;
  readonly source: string | null;
  readonly bytes: number | null;
  readonly installed: boolean;
  readonly active: boolean;
  /** Of a download that is not finished: the share that is there. */
  readonly partial: number | null;
  readonly fits: Verdict | null;
  readonly path: string | null;
}

/** What is here first, then the other names of the catalog. */
async function collect(
  store: ModelStore,
  active: string,
  fit: Fit | undefined,
  onlyInstalled: boolean,
): Promise<Row[]> {
  const models = store.list();
  const rows: Row[] = [builtinRow(active)];
  for (const model of models) rows.push(await installedRow(model, active, fit));
  if (onlyInstalled) return rows;
  const partials = store.partials().filter(({ name }) => !rows.some((row) => row.name === name));
  const others = catalog.filter(({ name }) => !rows.some((row) => row.name === name));
  const names = new Set([...others, ...partials].map(({ name }) => name));
  for (const name of names) {
    const partial = partials.find((one) => one.name === name);
    rows.push(absentRow(name, partial, active, fit));
  }
  return rows;
}

function builtinRow(active: string): Row {
  return {
    name: builtinName,
    title: "the small model inside zinc",
    source: null,
    bytes: null,
    installed: true,
    active: active === builtinName,
    partial: null,
    fits: "yes",
    path: null,
  };
}

async function installedRow(model: StoredModel, active: string, fit?: Fit): Promise<Row> {
  return {
    name: model.name,
    title: catalogEntry(model.name)?.title ?? null,
    source: model.source ?? null,
    bytes: model.sizeBytes,
    installed: true,
    active: model.name === active,
    partial: null,
    fits: fit === undefined ? null : await fit.ofFile(model.path),
    path: model.path,
  };
}

function absentRow(
  name: string,
  partial: PartialModel | undefined,
  active: string,
  fit: Fit | undefined,
): Row {
  const entry = catalogEntry(name);
  const bytes = entry?.sizeBytes ?? (partial?.totalBytes || null);
  return {
    name,
    title: entry?.title ?? null,
    source: entry === undefined ? null : `hf:${entry.repository}/${entry.file}`,
    bytes,
    installed: false,
    active: name === active,
    partial: partial === undefined ? null : partial.doneBytes / Math.max(partial.totalBytes, 1),
    fits: fit === undefined || bytes === null ? null : fit.ofSize(bytes),
    path: null,
  };
}

function format(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const widths = [1, width, 8, 4, 11, 0];
  const line = (...columns: readonly string[]) =>
    columns
      .map((text, i) => text.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd();
  const header = line(" ", "NAME", "SIZE", "HERE", "FITS", "MODEL");
  const lines = rows.map((row) => {
    const here = row.partial === null ? (row.installed ? "yes" : "–") : percent(row.partial);
    const size = row.bytes === null ? "–" : formatBytes(row.bytes);
    const title = row.title ?? row.source ?? "";
    return line(row.active ? "*" : " ", row.name, size, here, row.fits ?? "–", title);
  });
  return `${[paint(header, "bold", "stdout"), ...lines].join("\n")}\n`;
}

function percent(share: number): string {
  return `${Math.floor(share * 100)}%`;
}
