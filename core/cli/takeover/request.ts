/**
 * `modhost run --takeover`: requests the running server to hand over to another process.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { handOverText } from "../../operations/server.ts";
import { ownCommand } from "../../relay/ipc_child.ts";
import type { Change, ServerStatus } from "../../types.ts";
import { changeText, showChange } from "../admin/change.ts";
import { adminSocket, NoServerError, StuckServerError, send, statusOf } from "../admin/client.ts";
import { type CommandContext, UsageError } from "../command.ts";
import { hostOptions } from "../hosted.ts";

/** Seconds in which one of the two processes must serve again. */
const TIMEOUT = 300;
const LOOK_MS = 50;

/** Matches options of this command that the other process must not get. */
const own = /^--(takeover$|wait(=|$))/;

/**
 * Resolves to the exit code: 0 if the other process serves, 1 if the server keeps serving.
 * Undefined if no server runs.
 */
export async function takeOver(context: CommandContext): Promise<number | undefined> {
  const { configPath, search } = hostOptions(context, context.args);
  const socket = await adminSocket({ ...context, configPath, search });
  const before = await statusAt(socket);
  if (before === undefined) return undefined;
  const wait = waitOf(context.options.wait);
  const words = process.argv.slice(2).filter((word, at, all) => !own.test(word) && all[at - 1] !== "--wait");
  const request = { command: JSON.stringify(ownCommand(words)), folder: context.cwd, ...wait };
  const { value: change } = await send<Change>(socket, "POST", "/takeover", request);
  if (change.result !== "done") return showChange(context, change);
  const { pid, outcome } = await outcomeOf(socket, before);
  const { output } = context;
  const isDone = outcome.result === "done";
  const line = isDone
    ? `  Process ${pid} serves in place of process ${before.pid}.`
    : `  Process ${before.pid} keeps serving.`;
  const shown = { ...outcome, steps: change.steps };
  output.show({ ...shown, pid }, () => [changeText(output, shown), line].join("\n"));
  return isDone ? 0 : 1;
}

function waitOf(given: unknown): { wait?: number } {
  if (given === undefined) return {};
  const wait = Number(given);
  if (given === true || Number.isNaN(wait) || wait < 0) throw new UsageError("--wait takes a number of seconds");
  return { wait };
}

/**
 * Resolves to the outcome of the takeover, as the server that runs afterwards has recorded it. It
 * waits for that record, because a process that serves already may still give up.
 */
async function outcomeOf(socket: string, before: ServerStatus): Promise<{ pid: number; outcome: Change }> {
  const until = performance.now() + TIMEOUT * 1000;
  for (;;) {
    const status = await statusAt(socket);
    if (status !== undefined && status.started !== before.started) {
      const outcome = await recordedAt(socket);
      if (outcome !== undefined) return { pid: status.pid, outcome };
    }
    if (performance.now() > until) throw new Error(`No server has responded at ${socket} for ${TIMEOUT} s`);
    await sleep(LOOK_MS);
  }
}

/** Resolves to undefined while nothing is recorded, or no server responds. */
async function recordedAt(socket: string): Promise<Change | undefined> {
  const recorded = await unlessAbsent(send<Change[]>(socket, "GET", "/changes"));
  return recorded?.value.findLast(({ what }) => what === handOverText);
}

const statusAt = (socket: string) => unlessAbsent(statusOf(socket));

/** Resolves to undefined if no server responds. */
async function unlessAbsent<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof NoServerError || error instanceof StuckServerError) return undefined;
    throw error;
  }
}
