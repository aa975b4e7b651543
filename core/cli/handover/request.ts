/** `modhost run --takeover`: asks the server that runs to let another process go on in its place. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Change, ServerStatus } from "../../types.ts";
import { changeText, showChange } from "../admin/change.ts";
import { adminSocket, NoServerError, StuckServerError, send, statusOf } from "../admin/client.ts";
import { type CommandContext, UsageError } from "../command.ts";
import { hostOptions } from "../hosted.ts";

/** Seconds in which one of both processes must serve again. */
const TIMEOUT = 300;
const LOOK_MS = 50;

/** Options of this command that the other process is not to have. */
const own = /^--(takeover$|wait(=|$))/;

/**
 * Gives the exit code: 0 when the other process serves, 1 when it does not, and the server goes on as it was. Undefined
 * where no server runs.
 */
export async function takeOver(context: CommandContext): Promise<number | undefined> {
  const { configPath, search } = hostOptions(context, context.args);
  const socket = await adminSocket({ ...context, configPath, search });
  const before = await statusAt(socket);
  if (before === undefined) return undefined;
  const wait = waitOf(context.options.wait);
  const request = { command: JSON.stringify(commandOf(process.argv)), folder: context.cwd, ...wait };
  const { value: change } = await send<Change>(socket, "POST", "/takeover", request);
  if (change.result !== "done") return showChange(context, change);
  const after = await another(socket, before);
  const isOther = after.pid !== before.pid;
  const { output } = context;
  output.show({ ...change, result: isOther ? "done" : "failed", pid: after.pid }, () =>
    isOther
      ? [changeText(output, change), `  Process ${after.pid} serves in place of process ${before.pid}.`].join("\n")
      : output.paint(
          "red",
          `Process ${before.pid} goes on: the other one did not serve; the log of the server has more`,
        ),
  );
  return isOther ? 0 : 1;
}

/** This program, and its words but for those that are meant for this process. */
function commandOf([, program = "", ...words]: readonly string[]): string[] {
  const rest = words.filter((word, at) => !own.test(word) && words[at - 1] !== "--wait");
  const options = process.execArgv.filter((option) => !option.startsWith("--inspect"));
  return [process.execPath, ...options, program, ...rest];
}

function waitOf(given: unknown): { wait?: number } {
  if (given === undefined) return {};
  const wait = Number(given);
  if (given === true || Number.isNaN(wait) || wait < 0) throw new UsageError("--wait takes a number of seconds");
  return { wait };
}

/** The server that runs once this one has stopped. */
async function another(socket: string, before: ServerStatus): Promise<ServerStatus> {
  const until = performance.now() + TIMEOUT * 1000;
  for (;;) {
    const status = await statusAt(socket);
    if (status !== undefined && status.phase === "running" && status.started !== before.started) return status;
    if (performance.now() > until) throw new Error(`No server has answered at ${socket} for ${TIMEOUT} s`);
    await sleep(LOOK_MS);
  }
}

async function statusAt(socket: string): Promise<ServerStatus | undefined> {
  try {
    return await statusOf(socket);
  } catch (error) {
    if (error instanceof NoServerError || error instanceof StuckServerError) return undefined;
    throw error;
  }
}
