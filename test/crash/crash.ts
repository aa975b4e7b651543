/** Kills a working node at random moments and looks at what is left: nothing that was answered may be lost. */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { RpcServer } from "../support/rpc_server.ts";
import { Model } from "./model.ts";

export interface CrashOptions {
  readonly folder: string;
  readonly cycles: number;
  /** Longest time under load before a kill, milliseconds. */
  readonly longest?: number;
  readonly report?: (line: string) => void;
}

export interface CrashResult {
  readonly cycles: number;
  readonly acknowledged: number;
  readonly wrong: readonly string[];
}

const workers = 6;
const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(Math.random() * values.length)];

export async function crashCycles({ folder, cycles, longest = 1500, report }: CrashOptions): Promise<CrashResult> {
  const model = new Model();
  const wrong: string[] = [];
  for (let cycle = 1; cycle <= cycles && wrong.length === 0; cycle += 1) {
    const server = await RpcServer.start({ folder });
    const load = Promise.all(Array.from({ length: workers }, () => work(server, model)));
    await sleep(100 + Math.random() * longest);
    await server.kill("SIGKILL");
    await load;
    wrong.push(...(await inspect(folder, model)));
    report?.(`cycle ${cycle}: ${model.acknowledged} answered, ${model.known.size} contents, ${wrong.length} wrong`);
  }
  return { cycles, acknowledged: model.acknowledged, wrong };
}

/** Mixed operations until the server is gone. */
async function work(server: RpcServer, model: Model): Promise<void> {
  for (;;) {
    try {
      await operation(server, model);
    } catch {
      return;
    }
  }
}

async function operation(server: RpcServer, model: Model): Promise<void> {
  const dice = Math.random();
  if (dice < 0.55) return add(server, model);
  if (dice < 0.75) {
    const cid = pick(model.among("pinned"));
    if (cid !== undefined) await model.change(cid, () => answered(server.call("pin/rm", { arg: cid })), "unpinned");
  } else if (dice < 0.9) {
    // What is not pinned may be collected at any moment: without the network the pin may then fail.
    const cid = pick(model.among("unpinned"));
    const run = () => answered(server.call("pin/add", { arg: cid ?? "", timeout: "2s" }));
    if (cid !== undefined) await model.change(cid, run, "pinned");
  } else if (dice < 0.95) {
    await (await server.call("repo/gc")).arrayBuffer();
  } else {
    await (await server.call("block/put", {}, { data: randomBytes(2000) })).arrayBuffer();
  }
}

async function add(server: RpcServer, model: Model): Promise<void> {
  const content = randomBytes(Math.ceil(Math.random() ** 4 * 3_000_000));
  const hashed = await server.call("add", { "only-hash": "true" }, { file: content });
  const cid = (JSON.parse(await hashed.text()) as { Hash: string }).Hash;
  model.known.set(cid, { content, state: "uncertain" });
  await model.change(cid, () => answered(server.call("add", {}, { file: content })), "pinned");
}

/** Success in whole: status, body to its end. An error answer counts as none: the state stays uncertain. */
async function answered(call: Promise<Response>): Promise<boolean> {
  const response = await call;
  await response.arrayBuffer();
  return response.ok;
}

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Starts anew and compares with the model. */
async function inspect(folder: string, model: Model): Promise<string[]> {
  await using server = await RpcServer.start({ folder });
  const verified = (await (await server.call("repo/verify")).text()).trim().split("\n");
  const wrong = verified.filter(
    (line) => !/^\{"Msg":"(verify complete, all blocks validated\.)?","Progress":\d+\}$/.test(line),
  );
  const listed = JSON.parse(await (await server.call("pin/ls", { type: "recursive" })).text());
  wrong.push(...model.settle(new Set(Object.keys(listed.Keys))));
  for (const cid of model.among("pinned")) {
    const read = await server.call("cat", { arg: cid, timeout: "5s" });
    const got = digest(new Uint8Array(await read.arrayBuffer()));
    if (!read.ok || got !== digest(model.known.get(cid)?.content ?? new Uint8Array())) {
      wrong.push(`${cid} is pinned and cannot be read back: status ${read.status}`);
    }
  }
  return wrong;
}
