/** What an answer must look like, as the fields of OpenAI's API and of llama.cpp's say it. */
import type { AnswerShape } from "../chat/shape/answer-shape.ts";
import { invalid } from "./api-error.ts";
import type { ShapeRequest } from "./schema/openai.ts";

/** Throws an `ApiError` if there is more than one. */
export function answerShape(request: ShapeRequest): AnswerShape | undefined {
  const { response_format: format, grammar = "", json_schema: schema } = request;
  const isFormat = format !== undefined && format.type !== "text";
  const named = [
    ...(isFormat ? ["response_format"] : []),
    ...(schema === undefined ? [] : ["json_schema"]),
    ...(grammar === "" ? [] : ["grammar"]),
  ];
  if (named.length > 1) throw invalid(`${named[1]} and ${named[0]} exclude each other`, named[1]);
  if (grammar !== "") return { type: "grammar", grammar };
  if (schema !== undefined) return { type: "schema", schema };
  if (format === undefined || format.type === "text") return undefined;
  return format.type === "json_object"
    ? { type: "json" }
    : { type: "schema", schema: format.json_schema.schema };
}
