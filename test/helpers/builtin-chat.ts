/** Tokenizer, template and format of the model inside zinc, without its weights. */
import type { ChatFormat } from "../../src/chat/chat-prompt.ts";
import { formatOf } from "../../src/chat/output/format.ts";
import { resolveTemplate } from "../../src/chat/prompt.ts";
import { openModelFile, openTokenizer } from "../../src/index.ts";

let opened: Promise<ChatFormat> | undefined;

export function builtinChat(): Promise<ChatFormat> {
  opened ??= open();
  return opened;
}

async function open(): Promise<ChatFormat> {
  using file = await openModelFile();
  const tokenizer = openTokenizer(file);
  const template = resolveTemplate(file.metadata, tokenizer)?.template;
  if (tokenizer === undefined || template === undefined) throw new Error("Spark can chat");
  return { tokenizer, template, output: formatOf(template.source, tokenizer) };
}
