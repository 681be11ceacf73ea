/** From the source of a template to the package's tree. */

import { limitError, TemplateError } from "../template-error.ts";
import * as jinja from "./package.ts";
import type { Token } from "./package.ts";

/** The longest template that is parsed; those in use stay under 100 kB. */
const MAX_LENGTH = 256 * 1024;
/** The longest white space in it, for which the package's lexer takes quadratic time. */
const MAX_SPACE_LENGTH = 256;

export interface Program {
  readonly statements: jinja.ast.Statement[];
  /** The names that the template uses: variables, functions, keywords. */
  readonly names: ReadonlySet<string>;
}

/** Throws a `TemplateError` of kind "parse" or "limit", a RangeError for too deep a nesting. */
export function parseTemplate(source: string): Program {
  const isLong = ({ length }: string) => length > MAX_SPACE_LENGTH;
  if (source.length > MAX_LENGTH || source.split(/\S+/).some(isLong)) {
    throw limitError("the template is too long");
  }
  try {
    const lines = source.replace(/\r\n?/g, "\n");
    const tokens = jinja.tokenize(lines, { lstrip_blocks: true, trim_blocks: true });
    const names = tokens.filter(
      ({ type }, i) => type === "Identifier" && !/^(?:Dot|Pipe)$/.test(tokens[i - 1]?.type ?? ""),
    );
    return {
      statements: jinja.parse(rewriteTests(tokens)).body,
      names: new Set(names.map(({ value }) => value)),
    };
  } catch (error) {
    if (error instanceof RangeError) throw error;
    // At the end of the template the parser trips over the token that is not there.
    const isEnd = error instanceof TypeError;
    const message = isEnd ? "unexpected end of the template" : (error as Error).message;
    throw new TemplateError("parse", message);
  }
}

/**
 * Turns `x is not name 1` into `x | is not name(1)`: the package's tests take no arguments, its
 * filters do, and both bind alike. For `is in` there is an operator.
 */
function rewriteTests(tokens: readonly Token[]): Token[] {
  const result: Token[] = [];
  const rest = tokens.toReversed();
  for (let token = rest.pop(); token !== undefined; token = rest.pop()) {
    if (!isWord(token, "is") || result.at(-1)?.type === "Dot") {
      result.push(token);
      continue;
    }
    const negation = isWord(rest.at(-1), "not") ? rest.splice(-1) : [];
    if (isWord(rest.at(-1), "in")) {
      result.push(...negation);
      continue;
    }
    const words = [token, ...negation, ...rest.splice(-1)].map(({ value }) => value);
    result.push({ type: "Pipe", value: "|" }, { type: "Identifier", value: words.join(" ") });
    if (!/^(?:String|Numeric)Literal$/.test(rest.at(-1)?.type ?? "")) continue;
    result.push({ type: "OpenParen", value: "(" }, ...rest.splice(-1));
    result.push({ type: "CloseParen", value: ")" });
  }
  return result;
}

function isWord(token: Token | undefined, word: string): boolean {
  return token?.type === "Identifier" && token.value === word;
}
