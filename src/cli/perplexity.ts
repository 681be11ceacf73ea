/** `zinc perplexity`: how well the model predicts a text. */
import { describeCache } from "../engine/cache-description.ts";
import { nextTurn } from "../engine/turn.ts";
import { UserError } from "../errors.ts";
import type { LanguageModel } from "../index.ts";
import { kvTypesName } from "../kernels/kv-type.ts";
import { command } from "./command.ts";
import { integer, text } from "./flag.ts";
import { contextFlags, modelEnvironment, modelFlags, outputFlags, placeFlags } from "./flags.ts";
import { readTextFile } from "./input.ts";
import { runExitCodes } from "./manual.ts";
import { loadModel } from "./model-options.ts";
import { setQuiet, writeOut } from "./output.ts";
import { Progress } from "./progress.ts";
import { signalExitCode, stopGently } from "./signals.ts";

export const perplexityCommand = command({
  name: "perplexity",
  summary: "Measure how well the model predicts a text",
  description: `
    Cuts the text into windows, each read from an empty context, and scores the second half of
    each. No special tokens are added, and the tail of the text that fills no window is left
    out. Lower is better; compare only results of the same text and window.
  `,
  examples: {
    "zinc perplexity -m model.gguf -f text.txt": "over the whole text",
    "zinc perplexity -f text.txt --ctx 2048 --chunks 8": "over the beginning, in longer windows",
  },
  environment: modelEnvironment,
  exitCodes: runExitCodes,
  flags: {
    ...modelFlags,
    file: text("file", "the text in UTF-8, - for stdin; required", {
      alias: "f",
      completes: "files",
    }),
    ctx: integer("tokens", "length of a window (default 512)", { min: 4 }, { alias: "c" }),
    chunks: integer("k", "only the first k windows (default all)", { min: 1 }),
    kvType: contextFlags.kvType,
    deterministic: contextFlags.deterministic,
    ...placeFlags,
    ...outputFlags,
  },
  async run(values) {
    if (values.file === undefined)
      throw new UserError("usage", "no text is given", "write -f FILE");
    setQuiet(values.quiet === true);
    const ctx = values.ctx ?? 512;
    const content = await readTextFile(values.file);
    using model = await loadModel({ ...values, ctx, draft: "off" });
    const tokens = model.tokenize(content);
    const windowCount = Math.min(
      Math.floor(tokens.length / ctx),
      values.chunks ?? Number.POSITIVE_INFINITY,
    );
    if (windowCount === 0) {
      throw new UserError(
        "usage",
        `the text has ${tokens.length} tokens and a window ${ctx}`,
        "choose a smaller --ctx",
      );
    }
    stopGently();
    const result = await measure(model, tokens, ctx, windowCount);
    const { ppl, tokens: scored } = result;
    if (scored === 0) return signalExitCode() ?? 0;
    const { plan } = model.engine;
    const { kvTypes, cacheBytesPerToken } = plan;
    const facts = { ctx, kvType: kvTypesName(kvTypes), cacheBytesPerToken };
    await writeOut(
      values.json === true
        ? `${JSON.stringify({ ...result, ...facts })}\n`
        : `perplexity ${ppl.toFixed(4)} over ${scored} tokens, windows of ${ctx}, ` +
            `cache ${describeCache(plan)}\n`,
    );
    return signalExitCode() ?? 0;
  },
});

/**
 * exp of the mean negative log-likelihood: windows of `ctx` tokens, each from an empty context;
 * positions from the middle on are scored on the token that follows them.
 */
async function measure(
  model: LanguageModel,
  tokens: readonly number[],
  ctx: number,
  windowCount: number,
) {
  using progress = new Progress("perplexity");
  let sum = 0;
  let count = 0;
  for (let i = 0; i < windowCount && signalExitCode() === undefined; i++) {
    const part = tokens.slice(i * ctx, (i + 1) * ctx);
    model.forEachLogits(part, (position, logits) => {
      const next = part[position + 1];
      if (position < Math.floor(ctx / 2) || next === undefined) return;
      sum += surprise(logits, next);
      count++;
    });
    progress.step(i + 1, windowCount, `${Math.exp(sum / count).toFixed(4)} so far`);
    await nextTurn();
  }
  return { ppl: Math.exp(sum / count), tokens: count };
}

/** -log softmax(logits)[token] */
function surprise(logits: Float32Array, token: number): number {
  let best = Number.NEGATIVE_INFINITY;
  for (const logit of logits) if (logit > best) best = logit;
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - best);
  return Math.log(total) + best - (logits[token] ?? Number.NEGATIVE_INFINITY);
}
