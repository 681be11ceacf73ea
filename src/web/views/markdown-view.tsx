/** A text in Markdown, of which only what has changed is drawn again. */
import { memo } from "preact/compat";
import { useEffect, useRef } from "preact/hooks";
import { copyText } from "../files.ts";
import { blocksOf, type Block, type TrustedHTML } from "../markdown.ts";
import { announcement } from "../notices.ts";

export const MarkdownView = memo(function MarkdownView(props: {
  readonly text: string;
  readonly growing: boolean;
}) {
  const { text, growing } = props;
  const earlier = useRef<{ blocks: readonly Block[]; growing: boolean }>({ blocks: [], growing });
  // The last blocks are drawn anew when the text has come to its end: its code gets its colours.
  const blocks = blocksOf(text, earlier.current.blocks, growing);
  earlier.current = { blocks, growing };
  useAloud(blocks, growing);
  return (
    <div class="prose" onClick={copyCode}>
      {blocks.map(({ html }, i) => (
        <Html key={i} html={html} />
      ))}
    </div>
  );
});

const Html = memo(
  function Html({ html }: { readonly html: TrustedHTML }) {
    return <div class="block" dangerouslySetInnerHTML={{ __html: html }} />;
  },
  (a, b) => a.html === b.html || String(a.html) === String(b.html),
);

/** Each block of a growing answer is read aloud once it is complete. */
function useAloud(blocks: readonly Block[], growing: boolean): void {
  const saidCount = useRef(growing ? 0 : Number.POSITIVE_INFINITY);
  const completeCount = growing ? blocks.length - 1 : blocks.length;
  useEffect(() => {
    if (saidCount.current >= completeCount) return;
    const next = blocks.slice(saidCount.current, completeCount);
    saidCount.current = growing ? completeCount : Number.POSITIVE_INFINITY;
    announcement.set(next.map(({ source }) => source.trim()).join("\n"));
  }, [completeCount, growing]);
}

function copyCode(event: MouseEvent): void {
  const button = event.target;
  if (!(button instanceof HTMLElement) || !button.classList.contains("copy-code")) return;
  const code = button.closest("figure")?.querySelector("code")?.textContent ?? "";
  void copyText(code).then((isCopied) => {
    button.textContent = isCopied ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}
