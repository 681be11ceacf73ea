/** What time templates are told: ZINC_NOW fixes it. */
import { UserError } from "../errors.ts";

export function now(): Date {
  const fixed = process.env["ZINC_NOW"];
  if (!fixed) return new Date();
  const date = new Date(fixed);
  if (!Number.isNaN(date.getTime())) return date;
  throw new UserError("usage", `ZINC_NOW ${fixed} is no time`, "write it as 2026-11-30T10:15:00Z");
}
