/** `modhost status --watch`: shows the state of the server each second, across restarts. */
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

/** Milliseconds between attempts to reach a stopped server. */
const RETRY_MS = 1000;

/** The latest known state of the server. */
interface Seen {
  readonly status: ServerStatus;
  readonly metrics: Figures | undefined;
}

/** Shows the state on a screen or as lines of JSON. */
interface Shower {
  readonly left: AbortSignal;
  /** `note` is about the server as a whole: that it has stopped or was started again. */
  show(seen: Seen, note: string, isGone: boolean): void;
  close(): void;
}

/**
 * Shows a server until a key or a signal ends the command; returns the exit code. @throws
 * {NoServerError} no server is running at the start
 */
export async function watchStatus(context: CommandContext, socket: string): Promise<number> {
  const statusNow = () => statusOf(socket);
  let seen: Seen = { status: await statusNow(), metrics: undefined };
  const shower = context.output.json ? linesOf(context) : screenOf(context);
  const { left } = shower;
  let note = "";
  try {
    shower.show(seen, note, false);
    while (!left.aborted) {
      try {
        for await (const metrics of follow<Figures>(socket, "figures", left)) {
          const status = await statusNow();
          if (status.started !== seen.status.started) note = restartText(seen.status, status);
          seen = { status, metrics };
          shower.show(seen, note, false);
        }
      } catch (error) {
        if (!isUnanswered(error) && !left.aborted) throw error;
      }
      if (left.aborted) break;
      note = `No server has responded since ${clock()}: trying again every second`;
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
  return `The server was restarted: process ${before.pid} has ended, process ${now.pid} serves, seen at ${clock()}`;
}

const clock = () => new Date().toTimeString().slice(0, 8);

function screenOf(context: CommandContext): Shower {
  const screen = new Screen(context);
  const { paint } = context.output;
  return {
    left: screen.left,
    show({ status, metrics }, note, isGone) {
      const output = (width: number): Pick<Output, "paint" | "width"> => ({ paint, width });
      screen.draw((width) => [
        cutTo(`${clock()}  ${paint("dim", "q ends")}`, width),
        ...(note === "" ? [] : [cutTo(paint(isGone ? "red" : "yellow", note), width)]),
        "",
        ...statusLines(status, output(width), isGone ? undefined : metrics),
      ]);
    },
    close: () => screen.close(),
  };
}

/** Prints a line for each state, and a note on standard error when the server stops or starts. */
function linesOf({ output, stderr }: CommandContext): Shower {
  const leave = new AbortController();
  const end = () => leave.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, end);
  let lastNote = "";
  return {
    left: leave.signal,
    show({ status, metrics }, note, isGone) {
      if (note !== lastNote) stderr.write(`modhost: ${note}\n`);
      lastNote = note;
      if (!isGone) output.show({ ...status, metrics }, () => "");
    },
    close() {
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, end);
    },
  };
}
