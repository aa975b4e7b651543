/**
 * Kills a working node at random moments and checks what is left: no acknowledged change may be
 * lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { RpcServer } from "#test/support/rpc_server.ts";
import { damaged, observe } from "./items.ts";
import { Model } from "./model.ts";
import { CrashWorks } from "./works.ts";

export interface CrashOptions {
  readonly folder: string;
  readonly cycles: number;
  /** Maximum milliseconds from the first response of a cycle to the kill. */
  readonly longest?: number;
  readonly report?: (line: string) => void;
}

export interface CrashResult {
  /** Number of kills. */
  readonly cycles: number;
  readonly acknowledged: number;
  /** Number of successful calls of each kind. */
  readonly counts: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
}

const workers = 6;

export async function crashCycles(options: CrashOptions): Promise<CrashResult> {
  const { folder, cycles, longest = 700, report } = options;
  const model = new Model();
  const works = new CrashWorks(folder, model);
  let server = await firstServer(folder);
  let done = 0;
  try {
    model.begin(await observe(server));
    let wrong: string[] = [];
    for (; done < cycles && wrong.length === 0; done += 1) {
      const before = model.acknowledged;
      const load = Promise.all(Array.from({ length: workers }, () => work(server, works)));
      // Even on a slow machine, a kill must have something to lose.
      while (model.acknowledged === before && (await isPending(load))) await sleep(5);
      await sleep(Math.random() * longest);
      await server.kill("SIGKILL");
      await load;
      server = await RpcServer.start({ folder, env: serverEnv });
      const found = await observe(server);
      wrong = [...model.settle(found), ...(await damaged(server, model))];
      report?.(`cycle ${done + 1}: ${model.acknowledged} acknowledged, ${found.size} items, ${wrong.length} wrong`);
    }
    return { cycles: done, acknowledged: model.acknowledged, counts: works.counts, wrong };
  } finally {
    await server.stop();
  }
}

export const serverEnv = { MODHOST_NODE_OFFLINE: "true" };

const isPending = (work: Promise<unknown>): Promise<boolean> => Promise.race([work.then(() => false), sleep(0, true)]);

/** Starts a server on a repo that accepts references to files. */
export async function firstServer(folder: string): Promise<RpcServer> {
  const server = await RpcServer.start({ folder, env: serverEnv });
  const response = await server.call("config", [
    ["arg", "Experimental.FilestoreEnabled"],
    ["arg", "true"],
    ["bool", "true"],
  ]);
  const text = await response.text();
  await server.stop();
  if (!response.ok) throw new Error(`the filestore cannot be switched on: ${text}`);
  return RpcServer.start({ folder, env: serverEnv });
}

/** Does mixed work until the server has ended. */
async function work(server: RpcServer, works: CrashWorks): Promise<void> {
  for (;;) {
    try {
      await works.any(server);
    } catch (error) {
      if (!isLost(error)) throw error;
      return;
    }
  }
}

/** Returns whether a call has failed because the server has ended. */
const isLost = (error: unknown): boolean =>
  error instanceof TypeError && ["fetch failed", "terminated"].includes(error.message);
