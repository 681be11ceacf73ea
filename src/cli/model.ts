/** `zinc model`: the models that zinc keeps. */
import { commandGroup } from "./command.ts";
import { modelEnvironment } from "./flags.ts";

export const modelCommand = commandGroup({
  name: "model",
  summary: "Download, choose and look into models",
  description: `
    zinc keeps models under short names, which -m takes as well as the path of a file. One of
    them can be the active model, which is used where none is named.

    Names come from a list inside zinc (zinc model list); any other GGUF file on the hub or on a
    web server can be had by its address, and one on this machine by its path.
  `,
  commands: {
    list: {
      summary: "which models there are, and which fit this device",
      load: async () => (await import("./model/list.ts")).modelListCommand,
    },
    pull: {
      summary: "download a model, or take over a file",
      load: async () => (await import("./model/pull.ts")).modelPullCommand,
    },
    use: {
      summary: "choose the model that is used where none is named",
      load: async () => (await import("./model/use.ts")).modelUseCommand,
    },
    active: {
      summary: "print the model that is used where none is named",
      load: async () => (await import("./model/active.ts")).modelActiveCommand,
    },
    rm: {
      summary: "remove a model",
      load: async () => (await import("./model/rm.ts")).modelRmCommand,
    },
    info: {
      summary: "show what a model holds, without a GPU",
      load: async () => (await import("./model/info.ts")).modelInfoCommand,
    },
  },
  examples: {
    "zinc model list": "what is there, and what could be",
    "zinc model pull qwen3.5-2b --use": "download a model, and use it from now on",
    "zinc model info model.gguf": "look into a file",
  },
  environment: modelEnvironment,
  exitCodes: { 3: "the model is missing, damaged or not supported" },
  remedy: (word) =>
    word.endsWith(".gguf") ? `write zinc model info ${word}` : "zinc model --help lists them",
});
