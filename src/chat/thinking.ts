/** Whether a model is to think before it answers: a matter of its chat template. */
import type { ChatTemplate } from "./template.ts";
import { TemplateError } from "./template-error.ts";

/** "auto" leaves it to the template. */
export type Thinking = "on" | "off" | "auto";

/** The variables under which templates look for it. */
export function thinkingVariables(thinking: Thinking): Readonly<Record<string, boolean>> {
  if (thinking === "auto") return {};
  const isOn = thinking === "on";
  return { enable_thinking: isOn, thinking: isOn };
}

/** Whether the template cares. */
export function canSwitchThinking(template: ChatTemplate): boolean {
  const messages = [{ role: "user", content: "Hi" }];
  const render = (thinking: Thinking) =>
    template.render({ messages, add_generation_prompt: true, ...thinkingVariables(thinking) });
  try {
    return render("on") !== render("off");
  } catch (error) {
    if (error instanceof TemplateError) return false;
    throw error;
  }
}
