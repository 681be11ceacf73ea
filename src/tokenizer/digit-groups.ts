/** Cuts numbers into groups of three digits counted from the right, as 1|234|567 is read. */

export interface DigitRule {
  /** What a number is: a global pattern. */
  readonly run: RegExp;
  /** Whether the number is also cut from the text around it. */
  readonly isolate: boolean;
  /** A number that stands before this, a sticky pattern, is left alone. */
  readonly notBefore?: RegExp;
}

export function splitDigits(rule: DigitRule): (piece: string, out: string[]) => void {
  return (piece, out) => {
    let from = 0;
    function cut(at: number): void {
      if (at > from) out.push(piece.slice(from, at));
      from = Math.max(from, at);
    }
    for (const match of piece.matchAll(rule.run)) {
      const end = match.index + match[0].length;
      if (rule.notBefore !== undefined && matchesAt(rule.notBefore, piece, end)) continue;
      if (rule.isolate) cut(match.index);
      // By code points: the digits of some scripts are two units long.
      const digits = Array.from(match[0]);
      let at = match.index;
      digits.forEach((digit, index) => {
        if ((digits.length - index) % 3 === 0) cut(at);
        at += digit.length;
      });
      if (rule.isolate) cut(end);
    }
    cut(piece.length);
  };
}

function matchesAt(sticky: RegExp, text: string, at: number): boolean {
  sticky.lastIndex = at;
  return sticky.test(text);
}
