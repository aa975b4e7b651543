/** Stacks with file names that the author of a module knows. */
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { clipped, MAX_TEXT } from "./clipped.ts";
import { packageFolder } from "./package.ts";

/** Maximum number of characters of the frames of a stack. */
const MAX_FRAMES = 16 * 1024;
const MAX_CAUSES = 10;

/**
 * Returns a stack or message without the versions of imported files, and with paths instead of
 * URLs.
 */
export function withoutVersions(text: string): string {
  return text.replace(/\?v=\d+/g, "").replace(/file:\/\/[^\s:)]+/g, (url) => {
    try {
      return fileURLToPath(url);
    } catch {
      return url;
    }
  });
}

/**
 * Returns the lines of a stack, which has the message first and the frames last. A long message is
 * cut before it is processed.
 */
export function linesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return [];
  const stack = thrown.stack ?? String(thrown);
  const frames = stack.slice(-MAX_FRAMES);
  const text = stack.length <= MAX_TEXT + MAX_FRAMES ? stack : `${clipped(stack.slice(0, -MAX_FRAMES))}\n${frames}`;
  return withoutVersions(text).split("\n");
}

const ownFolder = packageFolder() + sep;
/** The host's sources, and the program that is built from them and from the bundled modules. */
const hostFolders = ["core", "dist"].map((name) => join(ownFolder, name) + sep);
const isFrame = (line: string) => /^\s+at /.test(line);
const isInner = (line: string) =>
  hostFolders.some((folder) => line.includes(folder)) ||
  /[( ]node:/.test(line) ||
  line.includes(`${sep}node_modules${sep}koa`) ||
  /^\s+at (?:new Promise \(<anonymous>\)|<anonymous>)$/.test(line);

/** Number of frames between the code that sets a timer and `foreignCaller`. */
const INNER_FRAMES = 3;

/**
 * Returns the file and line of the code that has called a watched function of Node.js; undefined
 * for code of the host and of Node.js.
 */
export function foreignCaller(): string | undefined {
  const caller = linesOf(new Error()).filter(isFrame)[INNER_FRAMES];
  if (caller === undefined || isInner(caller)) return undefined;
  return /\(?([^()\s]+?:\d+)(?::\d+)?\)?$/.exec(caller)?.[1];
}

/**
 * Returns true if code of this package is in the stack. Other errors have left nothing of the host
 * unfinished: unhandled socket errors, values that are not Errors, and errors that involve only
 * other files.
 */
export function hasOwnFrames(thrown: unknown): boolean {
  return linesOf(thrown).some((line) => isFrame(line) && line.includes(ownFolder));
}

/**
 * Returns the stack of any thrown value, with its causes. Frames of the host, Koa and Node are
 * folded into one line, unless there are no others. A refused permission has no frames then.
 */
export function stackOf(thrown: unknown): string {
  const parts: string[] = [];
  const known = new Set<unknown>();
  for (let error = thrown; error !== undefined && !known.has(error); error = (error as Error).cause) {
    if (known.size > MAX_CAUSES) {
      parts.push("more causes");
      break;
    }
    known.add(error);
    if (!(error instanceof Error)) {
      parts.push(clipped(String(error)));
      break;
    }
    parts.push(folded(error));
  }
  return parts.length === 0 ? clipped(String(thrown)) : parts.join("\n  caused by ");
}

function folded(error: Error): string {
  const lines = linesOf(error);
  const stack = lines.join("\n");
  if (lines.every((line) => !isFrame(line) || isInner(line))) {
    // The message of a refusal says what to do. The host raised it, and its frames say nothing
    // more.
    const isRefusal = (error as NodeJS.ErrnoException).code === "PERMISSION_DENIED";
    return isRefusal ? lines.filter((line) => !isFrame(line)).join("\n") : stack;
  }
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
