/**
 * Markdown → safe HTML, block by block, so that a growing answer costs only its last block. Raw
 * HTML is shown as text; pictures become links, for nothing is fetched from elsewhere; what is left
 * goes through DOMPurify as a second wall.
 */
import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import { highlight } from "./highlight.ts";

export interface Block {
  readonly source: string;
  readonly html: TrustedHTML;
}

/** What DOMPurify gives where the browser has trusted types, and a string elsewhere. */
export type TrustedHTML = string & { readonly trusted?: true };

const markdown = new MarkdownIt({ linkify: true, typographer: false, breaks: false });

markdown.renderer.rules["fence"] = (tokens, index) => {
  const token = tokens[index];
  const language = token?.info.trim().split(/\s+/)[0] ?? "";
  return codeBlock(token?.content ?? "", language, token?.meta?.isOpen !== true);
};
markdown.renderer.rules["code_block"] = (tokens, index) =>
  codeBlock(tokens[index]?.content ?? "", "", true);

markdown.renderer.rules["image"] = (tokens, index) => {
  const token = tokens[index];
  const text = token?.content || "picture";
  return link(String(token?.attrGet("src") ?? ""), markdown.utils.escapeHtml(text));
};

markdown.renderer.rules["link_open"] = (tokens, index, options, _, renderer) => {
  tokens[index]?.attrSet("target", "_blank");
  tokens[index]?.attrSet("rel", "noreferrer noopener");
  return renderer.renderToken(tokens, index, options);
};

// The page's policy allows no style attributes, which is how markdown-it aligns cells.
for (const rule of ["th_open", "td_open"]) {
  markdown.renderer.rules[rule] = (tokens, index, options, _, renderer) => {
    const token = tokens[index];
    const side = /text-align:(\w+)/.exec(String(token?.attrGet("style") ?? ""))?.[1];
    if (token !== undefined && side !== undefined) token.attrs = [["class", `to-${side}`]];
    return renderer.renderToken(tokens, index, options);
  };
}
markdown.renderer.rules["table_open"] = () =>
  '<div class="table" tabindex="0" role="region" aria-label="Table"><table>';
markdown.renderer.rules["table_close"] = () => "</table></div>";

/**
 * The blocks of a text. Those of an earlier state of it are taken over as far as the text has not
 * changed; while it is `growing`, its last code block may be without an end and is not coloured.
 */
export function blocksOf(text: string, earlier: readonly Block[], growing: boolean): Block[] {
  const kept = keptBlocks(text, earlier);
  const start = kept.reduce((sum, { source }) => sum + source.length, 0);
  const rest = text.slice(start);
  const sources = splitBlocks(rest);
  return [
    ...kept,
    ...sources.map((source, i) => ({
      source,
      html: render(source, growing && i === sources.length - 1),
    })),
  ];
}

/** All earlier blocks but the last two: what comes later can still change those. */
function keptBlocks(text: string, earlier: readonly Block[]): Block[] {
  const stable = earlier.slice(0, -2);
  const kept: Block[] = [];
  let position = 0;
  for (const block of stable) {
    if (!text.startsWith(block.source, position)) break;
    position += block.source.length;
    kept.push(block);
  }
  return kept;
}

/** Cuts a text where its top-level blocks begin; the pieces make up the whole text. */
export function splitBlocks(text: string): string[] {
  if (text === "") return [];
  const starts = markdown
    .parse(text, {})
    .filter(({ level, map, nesting }) => level === 0 && map !== null && nesting >= 0)
    .map(({ map }) => map?.[0] ?? 0);
  const lines = text.split("\n");
  const offsets = [0];
  for (const line of lines) offsets.push((offsets.at(-1) ?? 0) + line.length + 1);
  const cuts = [...new Set(starts.slice(1).map((line) => offsets[line] ?? text.length))];
  const edges = [0, ...cuts, text.length];
  return edges.slice(1).map((end, i) => text.slice(edges[i], end));
}

function render(source: string, growing: boolean): TrustedHTML {
  const tokens = markdown.parse(source, {});
  const last = tokens.at(-1);
  if (growing && last?.type === "fence") last.meta = { isOpen: true };
  const html = markdown.renderer.render(tokens, markdown.options, {});
  return purify(html);
}

/** Code as it is, with colours; for a tool's arguments. */
export function renderCode(code: string, language: string): TrustedHTML {
  return purify(codeBlock(code, language, true));
}

function purify(html: string): TrustedHTML {
  return DOMPurify.sanitize(html, {
    RETURN_TRUSTED_TYPE: true,
    FORBID_ATTR: ["style", "id", "name"],
    FORBID_TAGS: ["style", "img", "form", "input", "video", "audio", "svg", "math", "iframe"],
    ADD_ATTR: ["target"],
  }) as unknown as TrustedHTML;
}

function codeBlock(code: string, language: string, isClosed: boolean): string {
  const label = markdown.utils.escapeHtml(language || "text");
  const text = isClosed ? highlight(code, language) : undefined;
  return (
    `<figure class="code"><figcaption><span>${label}</span>` +
    '<button type="button" class="copy-code">Copy</button></figcaption>' +
    `<pre tabindex="0" role="region" aria-label="Code, ${label}"><code>` +
    `${text ?? markdown.utils.escapeHtml(code)}</code></pre></figure>`
  );
}

function link(target: string, text: string): string {
  const address = markdown.utils.escapeHtml(target);
  return `<a href="${address}" target="_blank" rel="noreferrer noopener">${text}</a>`;
}
