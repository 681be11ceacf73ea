/** One thing that `zinc --check` looked at. */

export type Status = "ok" | "warn" | "fail" | "skip";

export interface CheckResult {
  readonly name: string;
  readonly status: Status;
  /** What was found; for "warn" and "fail" also what to do. */
  readonly detail: string;
}

export function ok(name: string, detail: string): CheckResult {
  return { name, status: "ok", detail };
}

export function warning(name: string, detail: string): CheckResult {
  return { name, status: "warn", detail };
}

export function failure(name: string, detail: string): CheckResult {
  return { name, status: "fail", detail };
}

export function skipped(name: string, detail: string): CheckResult {
  return { name, status: "skip", detail };
}
