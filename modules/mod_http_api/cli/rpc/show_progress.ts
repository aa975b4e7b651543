/**
 * Presenters that show progress or a summary on a terminal. In a pipe, responses are printed as the
 * server writes them.
 */
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { isColored, painter, printable, size_text } from "../../../../core/cli/index.ts";
import { jsonLines, type Presenter, print, reportPendingKeys } from "./presenters.ts";
import { checkEnd, type Session, withOptions } from "./session.ts";
import type { RpcCommand } from "./surface.ts";
import { isForPeople } from "./tables.ts";

/** Milliseconds between two queries for the size of the repo. */
const SIZE_INTERVAL = 1000;

const counted = (count: number, what: string) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

/**
 * `repo gc` shows how many blocks were removed and how many bytes were freed, during the run and at
 * the end, instead of a line for each block.
 */
export const collectGarbage =
  (commands: ReadonlyMap<string, RpcCommand>): Presenter =>
  async (session, call) => {
    const stat = commands.get("repo/stat");
    if (stat === undefined || !isForPeople(session, call)) return print(session, call);
    const sizeNow = () => repoSize(session, stat);
    const before = await sizeNow();
    const response = await session.send(call);
    const progress = session.progress(undefined);
    let removed = 0;
    let freed = 0;
    let failed = 0;
    const over = new AbortController();
    const look = async () => {
      while (!over.signal.aborted) {
        await pause(SIZE_INTERVAL, undefined, { signal: over.signal }).catch(() => undefined);
        freed = Math.max(0, before - (await sizeNow()));
      }
    };
    const summary = () => `${counted(removed, "block")} removed, ${size_text(freed)} freed`;
    const looking = look();
    looking.catch(() => undefined);
    try {
      for await (const value of jsonLines(response.body)) {
        const { Error: why } = value as { readonly Error?: string };
        if (why === undefined) removed += 1;
        else {
          failed += 1;
          progress?.clear();
          session.context.stderr.write(`Error: ${printable(why)}\n`);
        }
        progress?.showText(` ${summary()}`);
      }
    } finally {
      over.abort();
      progress?.clear();
    }
    checkEnd(response);
    await looking;
    await session.write(`${summary()}${failed === 0 ? "" : `, ${counted(failed, "error")}`}\n`);
  };

async function repoSize(session: Session, command: RpcCommand): Promise<number> {
  const options = new Map([["size-only", ["true"]]]);
  const response = await session.send({ command, arguments: [], files: [], options });
  let size = 0;
  for await (const value of jsonLines(response.body))
    size = Number((value as { readonly RepoSize?: number }).RepoSize ?? 0);
  return size;
}

/** `pin add` shows the number of blocks visited, including those that were fetched. */
export const addPins: Presenter = async (session, call) => {
  const progress = isForPeople(session, call) ? session.progress(undefined) : undefined;
  if (progress === undefined) return print(session, call);
  const isRecursive = call.options.get("recursive")?.[0] !== "false";
  const response = await session.send(withOptions(call, { progress: "true" }));
  progress.showText(" looking for blocks");
  try {
    for await (const value of jsonLines(response.body)) {
      const { Progress = 0, Pins } = value as { readonly Progress?: number; readonly Pins?: readonly string[] };
      if (Pins === undefined) {
        progress.showText(` ${counted(Progress, "block")}`);
        continue;
      }
      progress.clear();
      const how = isRecursive ? "recursively" : "directly";
      for (const cid of Pins) await session.write(`pinned ${printable(cid)} ${how}\n`);
    }
  } finally {
    progress.clear();
  }
  checkEnd(response);
};

/**
 * `refs` prints the lines unchanged and reports their number: at the end and, if stdout is a pipe,
 * also while they arrive.
 */
export const countLines: Presenter = async (session, call) => {
  const { stdout, stderr } = session.context;
  if (stderr.isTTY !== true || call.options.has("encoding")) return print(session, call);
  const progress = stdout.isTTY === true ? undefined : session.progress(undefined);
  const response = await session.send(withOptions(call, { encoding: "text" }));
  let lines = 0;
  try {
    for await (const piece of response.body) {
      await session.write(piece);
      for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines += 1;
      progress?.showText(` ${counted(lines, "reference")}`);
    }
  } finally {
    progress?.clear();
  }
  checkEnd(response);
  stderr.write(`${counted(lines, "reference")}\n`);
};

/** Prints JSON with coloured names. */
export const colouredJson: Presenter = async (session, call) => {
  const { stdout, env } = session.context;
  if (!isForPeople(session, call) || !isColored(stdout, env)) return print(session, call);
  const paint = painter(true);
  const response = await session.send(withOptions(call, { encoding: "text" }));
  const json = await text(response.body);
  await session.write(
    json.replace(/^(\s*)("(?:[^"\\]|\\.)*")(?=:)/gm, (_, space, name) => space + paint("cyan", name)),
  );
  reportPendingKeys(session, response);
  checkEnd(response);
};
