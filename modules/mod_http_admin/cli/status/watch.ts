/** `modhost status --watch`: how the server is, each second, over restarts of it. */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CommandContext,
  follow,
  NoServerError,
  type Output,
  Screen,
  StuckServerError,
  statusOf,
} from "../../../../core/cli/index.ts";
import { cutTo } from "../../../../core/http/index.ts";
import type { ServerStatus } from "../../../../core/types.ts";
import type { Figures } from "../../types.ts";
import { statusLines } from "./text.ts";

/** A server that has gone is looked for so often. */
const RETRY_MS = 1000;

/** What is known of the server. */
interface Seen {
  readonly status: ServerStatus;
  readonly figures: Figures | undefined;
}

/** Whom it is told: a screen, or lines of JSON. */
interface Shower {
  readonly left: AbortSignal;
  /** `note` is about the server as a whole: that it has gone, or was started again. */
  show(seen: Seen, note: string, isGone: boolean): void;
  close(): void;
}

/**
 * Shows a server until a key or a signal ends it; gives the exit code.
 * @throws {NoServerError} none runs when it begins
 */
export async function watchStatus(context: CommandContext, socket: string): Promise<number> {
  const statusNow = () => statusOf(socket);
  let seen: Seen = { status: await statusNow(), figures: undefined };
  const shower = context.output.json ? linesOf(context) : screenOf(context);
  const { left } = shower;
  let note = "";
  try {
    shower.show(seen, note, false);
    while (!left.aborted) {
      try {
        for await (const figures of follow<Figures>(socket, "figures", left)) {
          const status = await statusNow();
          if (status.started !== seen.status.started) note = restartText(seen.status, status);
          seen = { status, figures };
          shower.show(seen, note, false);
        }
      } catch (error) {
        if (!isUnanswered(error) && !left.aborted) throw error;
      }
      if (left.aborted) break;
      note = `No server answers since ${clock()}: it is looked for every second`;
      while (!(await isThere(statusNow)) && !left.aborted) {
        shower.show(seen, note, true);
        await sleep(RETRY_MS, undefined, { signal: left }).catch(() => undefined);
      }
    }
  } finally {
    shower.close();
  }
  return 0;
}

const isUnanswered = (error: unknown) => error instanceof NoServerError || error instanceof StuckServerError;

async function isThere(statusNow: () => Promise<unknown>): Promise<boolean> {
  try {
    await statusNow();
    return true;
  } catch (error) {
    if (isUnanswered(error)) return false;
    throw error;
  }
}

function restartText(before: ServerStatus, now: ServerStatus): string {
  return `The server was started again: process ${before.pid} has gone, ${now.pid} serves, seen at ${clock()}`;
}

const clock = () => new Date().toTimeString().slice(0, 8);

function screenOf(context: CommandContext): Shower {
  const screen = new Screen(context);
  const { paint } = context.output;
  return {
    left: screen.left,
    show({ status, figures }, note, isGone) {
      const output = (width: number): Pick<Output, "paint" | "width"> => ({ paint, width });
      screen.draw((width) => [
        cutTo(`${clock()}  ${paint("dim", "q ends")}`, width),
        ...(note === "" ? [] : [cutTo(paint(isGone ? "red" : "yellow", note), width)]),
        "",
        ...statusLines(status, output(width), isGone ? undefined : figures),
      ]);
    },
    close: () => screen.close(),
  };
}

/** A line for each look, and a word on the standard error when the server goes or comes. */
function linesOf({ output, stderr }: CommandContext): Shower {
  const leave = new AbortController();
  const end = () => leave.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, end);
  let told = "";
  return {
    left: leave.signal,
    show({ status, figures }, note, isGone) {
      if (note !== told) stderr.write(`modhost: ${note}\n`);
      told = note;
      if (!isGone) output.show({ ...status, figures }, () => "");
    },
    close() {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, end);
    },
  };
}
