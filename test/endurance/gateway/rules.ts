/** Files `_redirects` of nearly 64 KiB. Each would make a backtracking matcher work forever. */

export interface Catastrophe {
  readonly rules: string;
  /** Further files of the website. */
  readonly files?: readonly string[];
}

const MAX = 65_536;

/** Returns as many lines as fit. */
function lines(line: (at: number) => string, room = MAX): string {
  let text = "";
  for (let at = 0; ; at += 1) {
    const next = `${line(at)}\n`;
    if (text.length + next.length > room) return text;
    text += next;
  }
}

/** Returns a short name for each number. */
const short = (at: number): string => at.toString(36);

const names = (count: number): string => Array.from({ length: count }, (_, at) => `/:${short(at)}`).join("");

export const catastrophes: Readonly<Record<string, Catastrophe>> = {
  stars: { rules: lines((at) => `/${short(at)}/* /a/:splat 301`) },
  "many stars": { rules: `/${"*/".repeat(30_000)} /a` },
  "near misses": { rules: lines(() => `/${"a/".repeat(200)}b/* /x`) },
  placeholders: { rules: `${names(7000)} /to${":!".repeat(12_000)} 301` },
  "every placeholder": { rules: `${names(3000)} ${names(3000)} 301` },
  "a splat a thousand times": { rules: `/* /${":splat/".repeat(5000)} 301` },
  "a query of splats": { rules: `/* /x?${":splat=:splat&".repeat(3000)} 301` },
  loop: { rules: "/a /b 302\n/b /a 302\n/* /b 302" },
  "loop of rewrites": { rules: "/a /b 200\n/b /a 200\n/* /c 200" },
  "the longest line": { rules: `/${"a".repeat(60_000)} /b` },
  blanks: { rules: `/a${" ".repeat(65_000)}/b 301` },
  empty: { rules: "\n".repeat(MAX) },
  hashes: { rules: "#".repeat(MAX) },
  "out of the website": { rules: "/* /../../../../etc/passwd 200" },
  "into a header": { rules: "/* https://example.com/:splat%0d%0aSet-Cookie:%20a=b 301" },
  "too large": { rules: "#".repeat(MAX + 1) },
  "no text": { rules: "\0\u{fffd}".repeat(10_000) },
};
