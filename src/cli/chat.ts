/** `zinc chat`: a conversation in the terminal, or over a pipe with a message on each line. */
import { UserError } from "../errors.ts";
import { readFormat } from "./answer-format.ts";
import { isCommand, runCommand } from "./chat/commands.ts";
import { LineInput } from "./chat/line-input.ts";
import { ChatSession } from "./chat/session.ts";
import { clock } from "./clock.ts";
import { command } from "./command.ts";
import {
  chatFlags,
  contextFlags,
  draftFlags,
  modelEnvironment,
  modelFlags,
  outputFlags,
  placeFlags,
  promptFlags,
  samplingFlags,
  shapeFlags,
} from "./flags.ts";
import { runExitCodes } from "./manual.ts";
import { describeLoaded, generateOptions, loadModel } from "./model-options.ts";
import { note, printError, setQuiet } from "./output.ts";
import { Editor, type Input } from "./terminal/editor.ts";
import { readTools } from "./tools-file.ts";

/** Where messages come from. */
interface Source {
  read(prompt: string): Promise<Input>;
}

/** Recurrent state to keep: behind the first message, the last two, and the prompt. */
const checkpointCount = 4;

export const chatCommand = command({
  name: "chat",
  summary: "Hold a conversation; /help in it lists its commands",
  description: `
    Answers each message with all that was said before in mind. In a terminal the keys are those
    of readline, Ctrl+J begins a new line, and Ctrl+C stops an answer. Over a pipe each line is a
    message; three quotes around several make one of them.

    Answers go to stdout, and everything else to stderr: thoughts, speeds and errors. What fails
    in a conversation is said, and the conversation goes on.
  `,
  examples: {
    "zinc chat": "with the active model",
    'zinc chat -m qwen3.5-2b --system "Answer briefly." --think off':
      "what the model is told first, and whether it thinks",
    "zinc chat -m model.gguf --tools tools.json": "with functions that it may call",
    "zinc chat --quiet < questions.txt": "a message on each line, the answers to stdout",
  },
  environment: { ...modelEnvironment, ZINC_NOW: "the time that templates are told; default now" },
  exitCodes: { ...runExitCodes, 2: "the arguments are wrong, or a message over a pipe was" },
  flags: {
    ...modelFlags,
    ...chatFlags,
    ...shapeFlags,
    template: promptFlags.template,
    ...samplingFlags,
    ...contextFlags,
    ...draftFlags,
    ...placeFlags,
    quiet: outputFlags.quiet,
  },
  remedy: "say it in the conversation, or pipe it in",
  async run(values) {
    setQuiet(values.quiet === true);
    const format = await readFormat(values);
    const generate = { ...generateOptions(values), format, now: clock() };
    const tools = values.tools === undefined ? [] : await readTools(values.tools);
    using model = await loadModel(values, { checkpoints: checkpointCount });
    const { system, think: thinking } = values;
    const session = new ChatSession(model, { system, thinking, tools, generate });
    describeLoaded(model);
    const isTerminal = process.stdin.isTTY === true;
    if (isTerminal) note("/help lists the commands, Ctrl+D leaves");
    return await converse(session, openSource(isTerminal), isTerminal);
  },
});

/** Messages are edited where that can be drawn. */
function openSource(isTerminal: boolean): Source {
  const showsPrompt = isTerminal && process.stderr.isTTY === true;
  if (showsPrompt && process.env["TERM"] !== "dumb") return new Editor();
  return new LineInput(process.stdin, showsPrompt);
}

/** Returns the exit code. At a terminal what fails can be said again; in a script it counts. */
async function converse(
  session: ChatSession,
  source: Source,
  isTerminal: boolean,
): Promise<number> {
  let code = 0;
  for (let isWarned = false; ;) {
    const input = await source.read(session.prompt);
    if (input.type === "end") return code;
    if (input.type === "interrupt") {
      if (isWarned) return 130;
      isWarned = true;
      note("Ctrl+C once more leaves, as Ctrl+D does");
      continue;
    }
    try {
      if ((await obey(session, input.text)) === "leave") return code;
    } catch (error) {
      if (!(error instanceof UserError) || error.kind !== "usage") throw error;
      printError(error.text);
      if (!isTerminal) code = 2;
    }
    isWarned = session.takeInterrupt();
  }
}

async function obey(session: ChatSession, message: string): Promise<"leave" | void> {
  if (message.trim() === "") return undefined;
  if (isCommand(message)) return runCommand(session, message);
  return session.say(message.replace(/^\/\//, "/"));
}
