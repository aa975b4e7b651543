/** Stacks as the author of a module knows the files. */
import { sep } from "node:path";
import { fileURLToPath } from "node:url";
import { isClone } from "./package.ts";

/** A stack or message without the versions under which files are imported, and with paths instead of URLs. */
export function withoutVersions(text: string): string {
  return text.replace(/\?v=\d+/g, "").replace(/file:\/\/[^\s:)]+/g, (url) => {
    try {
      return fileURLToPath(url);
    } catch {
      return url;
    }
  });
}

/** Where the host's own sources lie, or what is built from them and from the bundled modules. */
const hostFolder = fileURLToPath(new URL(isClone ? ".." : "../..", import.meta.url));
const isFrame = (line: string) => /^\s+at /.test(line);
const isInner = (line: string) =>
  line.includes(hostFolder) ||
  /[( ]node:/.test(line) ||
  line.includes(`${sep}node_modules${sep}koa`) ||
  /^\s+at (?:new Promise \(<anonymous>\)|<anonymous>)$/.test(line);

/**
 * The stack of whatever was thrown, with its causes. Frames of the host, of Koa and of Node are folded into a line, unless
 * there are no others.
 */
export function stackOf(thrown: unknown): string {
  const parts: string[] = [];
  const known = new Set<unknown>();
  for (let error = thrown; error !== undefined && !known.has(error); error = (error as Error).cause) {
    known.add(error);
    if (!(error instanceof Error)) {
      parts.push(String(error));
      break;
    }
    parts.push(folded(withoutVersions(error.stack ?? String(error))));
  }
  return parts.length === 0 ? String(thrown) : parts.join("\n  caused by ");
}

function folded(stack: string): string {
  const lines = stack.split("\n");
  if (lines.every((line) => !isFrame(line) || isInner(line))) return stack;
  const shown: string[] = [];
  let count = 0;
  for (const line of [...lines, ""]) {
    if (isFrame(line) && isInner(line)) {
      count += 1;
      continue;
    }
    if (count > 0) shown.push(`    at … (${count} of modhost and Node.js)`);
    count = 0;
    shown.push(line);
  }
  return shown.slice(0, -1).join("\n");
}
