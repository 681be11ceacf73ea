/** What a conversation remembers, and what it takes back. */
import { describe, expect, test } from "bun:test";
import { Conversation } from "../../src/chat/conversation.ts";

const answer = (text: string) => ({ text, reasoning: "", toolCalls: [] });
const call = (id: string) => ({ id, name: "get_time", arguments: "{}" });

describe("a conversation", () => {
  test("is what was said and answered, behind the system's message", () => {
    const conversation = new Conversation("Be kind.");
    conversation.say("Hi");
    conversation.answer({ text: "Hello!", reasoning: "A greeting.", toolCalls: [] });
    expect(conversation.messages).toEqual([
      { role: "system", content: "Be kind." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello!", reasoning_content: "A greeting." },
    ]);
    conversation.clear();
    expect(conversation.messages).toEqual([{ role: "system", content: "Be kind." }]);
  });

  test("takes what is said behind a call for its result, one after the other", () => {
    const conversation = new Conversation();
    conversation.say("What time is it in Paris and Rome?");
    conversation.answer({ ...answer(""), toolCalls: [call("a"), call("b")] });
    expect(conversation.openCalls).toEqual([
      { id: "a", name: "get_time" },
      { id: "b", name: "get_time" },
    ]);
    conversation.say("8:00");
    expect(conversation.openCalls).toEqual([{ id: "b", name: "get_time" }]);
    conversation.say("9:00");
    expect(conversation.openCalls).toEqual([]);
    expect(conversation.messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: "",
        tool_calls: [
          { id: "a", type: "function", function: { name: "get_time", arguments: "{}" } },
          { id: "b", type: "function", function: { name: "get_time", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "a", name: "get_time", content: "8:00" },
      { role: "tool", tool_call_id: "b", name: "get_time", content: "9:00" },
    ]);
  });

  test("goes back to the last question", () => {
    const conversation = new Conversation();
    expect(conversation.retract()).toBe(false);
    conversation.say("Hi");
    conversation.answer({ ...answer(""), toolCalls: [call("a")] });
    conversation.say("8:00");
    conversation.answer(answer("It is 8:00."));
    expect(conversation.retract()).toBe(true);
    expect(conversation.messages).toEqual([{ role: "user", content: "Hi" }]);
    conversation.unsay();
    expect(conversation.messages).toEqual([]);
  });

  test("goes on with another, whose system message it takes over", () => {
    const conversation = new Conversation("Be kind.");
    conversation.replace([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ]);
    expect(conversation.system).toBe("Be brief.");
    conversation.replace([{ role: "user", content: "Hi" }]);
    expect(conversation.messages).toEqual([{ role: "user", content: "Hi" }]);
  });
});
