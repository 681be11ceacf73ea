/** The parts that need no device: tokens of a text, text of tokens, and rendered templates. */
import { invariant } from "../../errors.ts";
import { chatRequest } from "../conversation.ts";
import type { Exchange } from "../exchange.ts";
import { checkBody } from "../schema/field.ts";
import { detokenizeBody, templateBody, tokenizeBody } from "../schema/openai.ts";

/** POST /tokenize */
export async function tokenize({ service, route }: Exchange, body: unknown): Promise<Response> {
  const { value, unknown } = checkBody(tokenizeBody, body);
  service.noteUnknown(route, unknown);
  const special = value.special ?? value.parse_special ?? value.add_special ?? false;
  const reply = await service.host.ask({ type: "tokenize", text: value.content, special });
  invariant(reply.type === "tokens", "tokens are the reply to a text");
  if (value.with_pieces !== true) return Response.json({ tokens: reply.tokens });
  const tokens = reply.tokens.map((id, i) => ({ id, piece: reply.texts[i] }));
  return Response.json({ tokens });
}

/** POST /detokenize */
export async function detokenize({ service, route }: Exchange, body: unknown): Promise<Response> {
  const { value, unknown } = checkBody(detokenizeBody, body);
  service.noteUnknown(route, unknown);
  const reply = await service.host.ask({ type: "detokenize", tokens: value.tokens });
  invariant(reply.type === "text", "text is the reply to tokens");
  return Response.json({ content: reply.text });
}

/** POST /apply-template */
export async function applyTemplate(exchange: Exchange, body: unknown): Promise<Response> {
  const { service, route } = exchange;
  const { value, unknown } = checkBody(templateBody, body);
  service.noteUnknown(route, unknown);
  const request = chatRequest({
    messages: value.messages,
    tools: value.tools,
    variables: value.chat_template_kwargs,
    asks: value.add_generation_prompt,
  });
  const reply = await service.host.ask({ type: "template", request });
  invariant(reply.type === "prompt", "a prompt is the reply to messages");
  return Response.json({ prompt: reply.text });
}
