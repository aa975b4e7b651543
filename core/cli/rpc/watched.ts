/** Commands that take long, or say much, as people at a terminal see them; in a pipe they are what the server writes. */
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { isColored, painter } from "../../util/terminal.ts";
import { printable, size_text } from "../../util/text.ts";
import { jsonLines, type Presenter, print, tellWaiting } from "./outcome.ts";
import { checkEnd, type Session, withOptions } from "./session.ts";
import type { RpcCommand } from "./surface.ts";
import { isForPeople } from "./tables.ts";

/** Milliseconds between two questions for the size of the repo. */
const SIZE_INTERVAL = 1000;

const counted = (count: number, what: string) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

/** `repo gc`: how much is removed and freed so far, and at the end, in place of a line for each block. */
export const collectGarbage =
  (commands: ReadonlyMap<string, RpcCommand>): Presenter =>
  async (session, call) => {
    const stat = commands.get("repo/stat");
    if (stat === undefined || !isForPeople(session, call)) return print(session, call);
    const sizeNow = () => repoSize(session, stat);
    const before = await sizeNow();
    const answer = await session.send(call);
    const progress = session.progress(undefined);
    let [removed, freed, failed] = [0, 0, 0];
    const over = new AbortController();
    const look = async () => {
      while (!over.signal.aborted) {
        await pause(SIZE_INTERVAL, undefined, { signal: over.signal }).catch(() => undefined);
        freed = Math.max(0, before - (await sizeNow()));
      }
    };
    const tell = () => `${counted(removed, "block")} removed, ${size_text(freed)} freed`;
    const looking = look();
    looking.catch(() => undefined);
    try {
      for await (const value of jsonLines(answer.body)) {
        const { Error: why } = value as { readonly Error?: string };
        if (why === undefined) removed += 1;
        else {
          failed += 1;
          progress?.clear();
          session.context.stderr.write(`Error: ${printable(why)}\n`);
        }
        progress?.tell(` ${tell()}`);
      }
    } finally {
      over.abort();
      progress?.clear();
    }
    checkEnd(answer);
    await looking;
    await session.write(`${tell()}${failed === 0 ? "" : `, ${counted(failed, "error")}`}\n`);
  };

async function repoSize(session: Session, command: RpcCommand): Promise<number> {
  const options = new Map([["size-only", ["true"]]]);
  const answer = await session.send({ command, arguments: [], files: [], options });
  let size = 0;
  for await (const value of jsonLines(answer.body))
    size = Number((value as { readonly RepoSize?: number }).RepoSize ?? 0);
  return size;
}

/** `pin add`: how many blocks were visited, those that are fetched among them. */
export const addPins: Presenter = async (session, call) => {
  const progress = isForPeople(session, call) ? session.progress(undefined) : undefined;
  if (progress === undefined) return print(session, call);
  const isRecursive = call.options.get("recursive")?.[0] !== "false";
  const answer = await session.send(withOptions(call, { progress: "true" }));
  progress.tell(" looking for blocks");
  try {
    for await (const value of jsonLines(answer.body)) {
      const { Progress = 0, Pins } = value as { readonly Progress?: number; readonly Pins?: readonly string[] };
      if (Pins === undefined) {
        progress.tell(` ${counted(Progress, "block")}`);
        continue;
      }
      progress.clear();
      const how = isRecursive ? "recursively" : "directly";
      for (const cid of Pins) await session.write(`pinned ${printable(cid)} ${how}\n`);
    }
  } finally {
    progress.clear();
  }
  checkEnd(answer);
};

/** `refs`: the lines as they are, and how many there are: as they come, where they go into a pipe, and at the end. */
export const tallied: Presenter = async (session, call) => {
  const { stdout, stderr } = session.context;
  if (stderr.isTTY !== true || call.options.has("encoding")) return print(session, call);
  const progress = stdout.isTTY === true ? undefined : session.progress(undefined);
  const answer = await session.send(withOptions(call, { encoding: "text" }));
  let lines = 0;
  try {
    for await (const piece of answer.body) {
      await session.write(piece);
      for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines += 1;
      progress?.tell(` ${counted(lines, "reference")}`);
    }
  } finally {
    progress?.clear();
  }
  checkEnd(answer);
  stderr.write(`${counted(lines, "reference")}\n`);
};

/** JSON with its names in a colour. */
export const paintedJson: Presenter = async (session, call) => {
  const { stdout, env } = session.context;
  if (!isForPeople(session, call) || !isColored(stdout, env)) return print(session, call);
  const paint = painter(true);
  const answer = await session.send(withOptions(call, { encoding: "text" }));
  const json = await text(answer.body);
  await session.write(
    json.replace(/^(\s*)("(?:[^"\\]|\\.)*")(?=:)/gm, (_, space, name) => space + paint("cyan", name)),
  );
  tellWaiting(session, answer);
  checkEnd(answer);
};
