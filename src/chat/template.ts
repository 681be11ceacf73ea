/**
 * A model's chat template: messages → prompt text, as Python's Jinja gives it in the sandbox of
 * transformers. Templates and messages both come from strangers; neither can hang the program or
 * pass for the other.
 */

import { startBudget, type TemplateLimits } from "./jinja/budget.ts";
import { globalScope } from "./jinja/globals.ts";
import { TemplateInterpreter } from "./jinja/interpreter.ts";
import { parseTemplate, type Program } from "./jinja/parse.ts";
import type { Segment, Text } from "./jinja/text.ts";
import { guarded } from "./template-error.ts";
import { modelVariables, type TemplateInput, userVariables } from "./template-input.ts";

export interface RenderOptions {
  /** Tells the time to `strftime_now`; the system clock if absent. */
  readonly now?: () => Date;
  /** Bounds of this rendering, where they differ from the usual ones. */
  readonly limits?: Partial<TemplateLimits>;
}

/** A parsed template. Rendering leaves it unchanged. */
export class ChatTemplate {
  readonly source: string;
  readonly #program: Program;
  readonly #modelVariables: Readonly<Record<string, unknown>>;

  /**
   * `modelVariables` are those that come with the model, such as `bos_token` and `eos_token`; an
   * input may override them. Throws a `TemplateError` of kind "parse" or "limit".
   */
  constructor(source: string, modelVariables: Readonly<Record<string, unknown>> = {}) {
    this.source = source;
    this.#program = guarded(() => parseTemplate(source));
    this.#modelVariables = modelVariables;
  }

  /** Whether the template uses a variable or function of this name, such as "strftime_now". */
  mentions(name: string): boolean {
    return this.#program.names.has(name);
  }

  /** The prompt for an input, which is rendered as given. Throws a `TemplateError`. */
  render(input: TemplateInput, options: RenderOptions = {}): string {
    return this.#run(input, options).value;
  }

  /**
   * The prompt, cut where its origin changes. `special` segments are what the template wrote, so
   * special tokens may be recognised in them and only there. The others come from the input: all
   * of it but the roles that are plain words, because templates make markers from those.
   *
   * All segments together are exactly what `render` gives: origin is remembered beside the
   * characters and no operation looks at it. A string in which it cannot be followed counts as
   * the user's.
   *
   * A segment is no unit of tokenization. Text between two recognised special tokens is one piece
   * for the tokenizer, however many segments it spans.
   */
  renderSegments(input: TemplateInput, options: RenderOptions = {}): Segment[] {
    return this.#run(input, options).segments();
  }

  #run(input: TemplateInput, { now = () => new Date(), limits }: RenderOptions): Text {
    startBudget(limits);
    return guarded(() => {
      const scope = globalScope(now);
      const variables = [...modelVariables(this.#modelVariables), ...userVariables(input)];
      for (const [name, value] of variables) scope.setVariable(name, value);
      return new TemplateInterpreter().render(this.#program.statements, scope);
    });
  }
}
