/**
 * An answer that must be a call: the prompt ends with the mark that opens one, and a grammar holds
 * what follows to the name and the arguments of a tool. It is known how to for calls that are JSON
 * between tags, which most models write.
 */
import type { ChatTemplate } from "../template.ts";
import { commonRules, schemaRules } from "./json-schema.ts";
import { UnsupportedSchema } from "./unsupported-schema.ts";

export interface CallableTool {
  readonly name: string;
  /** A JSON schema; any object if there is none. */
  readonly parameters: unknown;
}

/** What stands before and behind a call; special tokens count. */
export const callOpening = "<tool_call>\n";
export const callClosing = "\n</tool_call>";

/** Whether the template shows calls in this form. */
export function canForceCalls(template: ChatTemplate): boolean {
  return /<tool_call>(?:\n|\\n)\{\\?["']name\\?["']: /.test(template.source);
}

/** The grammar of a call of one of these. Throws `UnsupportedSchema` that names the tool. */
export function callGrammar(tools: readonly CallableTool[]): string {
  const rules = tools.map(({ name, parameters = { type: "object" } }, i) => {
    try {
      const { root, rules: own } = schemaRules(parameters, `t${i}`);
      const head = JSON.stringify(`{"name": ${JSON.stringify(name)}, "arguments": `);
      return [`call${i} ::= ${head} ${root} "}"`, ...own];
    } catch (error) {
      if (!(error instanceof UnsupportedSchema)) throw error;
      throw new UnsupportedSchema(`tool ${name}`, error.message);
    }
  });
  const root = `root ::= ${tools.map((_tool, i) => `call${i}`).join(" | ")}`;
  return [root, ...rules.flat(), ...commonRules].join("\n");
}
