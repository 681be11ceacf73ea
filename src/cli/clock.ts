/** What time templates are told: ZINC_NOW fixes it. */
import { UserError } from "../errors.ts";

/** Throws a "usage" error at once, not when a template asks for the time. */
export function clock(fixed: string | undefined = process.env["ZINC_NOW"]): () => Date {
  if (!fixed) return () => new Date();
  const date = new Date(fixed);
  if (!Number.isNaN(date.getTime())) return () => date;
  throw new UserError("usage", `ZINC_NOW ${fixed} is no time`, "write it as 2026-11-30T10:15:00Z");
}
