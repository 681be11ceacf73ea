/** The date as C's `strftime` writes it, in English and in local time. */

/** Text as it is, or a number with its width. */
const fields: Readonly<Record<string, (date: Date) => string | readonly [number, number]>> = {
  a: (date) => date.toLocaleDateString("en-US", { weekday: "short" }),
  A: (date) => date.toLocaleDateString("en-US", { weekday: "long" }),
  b: (date) => date.toLocaleDateString("en-US", { month: "short" }),
  B: (date) => date.toLocaleDateString("en-US", { month: "long" }),
  d: (date) => [date.getDate(), 2],
  e: (date) => String(date.getDate()).padStart(2),
  H: (date) => [date.getHours(), 2],
  I: (date) => [date.getHours() % 12 || 12, 2],
  j: (date) => [dayOfYear(date), 3],
  m: (date) => [date.getMonth() + 1, 2],
  M: (date) => [date.getMinutes(), 2],
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  S: (date) => [date.getSeconds(), 2],
  y: (date) => [date.getFullYear() % 100, 2],
  Y: (date) => [date.getFullYear(), 1],
  "%": () => "%",
};

/** By a format such as "%d %b %Y"; glibc's "%-d" has no zero in front. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (whole, flag: string, directive: string) => {
    const field = fields[directive]?.(date);
    if (field === undefined || typeof field === "string") return field ?? whole;
    const [value, width] = field;
    return flag === "-" ? String(value) : String(value).padStart(width, "0");
  });
}

function dayOfYear(date: Date): number {
  const start = new Date(date.getFullYear(), 0, 1);
  const midnight = new Date(date.getFullYear(), date.getMonth(), date.getDate());
  // Rounded, because days on which clocks change have 23 or 25 hours.
  return Math.round((midnight.getTime() - start.getTime()) / 86_400_000) + 1;
}
