/** The gateway under attack in a process of its own, which reports its state to its parent. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { NodeModule } from "modhost/node";
import { createNode } from "#node/index.ts";
import { startHost } from "#test/support/host.ts";
import { LoopMeter } from "../fuzz/delay/meter.ts";
import { type ContentSize, harmful, type Roots } from "./content.ts";

export interface Ready {
  readonly http: number;
  readonly https: number;
  readonly roots: Roots;
}

export interface ServerMetrics {
  /** Bytes of the process itself: heap, buffers and memory of libraries. */
  readonly memory: number;
  /** Maximum CPU time in milliseconds for which the event loop was blocked since the last call. */
  readonly turn: number;
  readonly files: number;
  /** Log lines about faults of the server. */
  readonly faults: readonly string[];
}

/** Pins that are left. Sent once nobody has the lock of the store. */
export interface LeftPins {
  readonly pins: readonly string[];
}

export interface Instruction {
  readonly ask: "metrics" | "left" | "stop";
  readonly collect?: boolean;
}

const [size = "{}", measured = "false"] = process.argv.slice(2);
let roots: Roots = {};
let node: NodeModule | undefined;
const host = await startHost({
  async prepare(folder) {
    await using made = await createNode({ repo: join(folder, "data", "repo"), offline: true });
    roots = await harmful(made, JSON.parse(size) as ContentSize);
  },
  config: { modules_enabled: ["http", "http_gateway", "attacked"], node_offline: true, trusted_proxies: [] },
  modules: {
    attacked: (module) => {
      node = module.depends<NodeModule>("node");
    },
  },
});
const meter = measured === "true" ? new LoopMeter() : undefined;

async function metrics(collect: boolean): Promise<ServerMetrics> {
  // The first collection releases buffers; another thread frees them later.
  for (let times = collect ? 3 : 0; times > 0; times -= 1) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((go) => setTimeout(go, 20));
  }
  const status = readFileSync("/proc/self/status", "latin1");
  return {
    memory: 1024 * Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1]),
    turn: meter?.take() ?? 0,
    files: readdirSync("/proc/self/fd").length,
    faults: host
      .log()
      .split("\n")
      .filter((line) => /"level":"(error|fatal)"/.test(line)),
  };
}

async function left(): Promise<LeftPins> {
  const { lock } = (node as NodeModule).lowLevel;
  // Waits until nobody reads or adds.
  (await lock.acquireExclusive(undefined))();
  return { pins: await Array.fromAsync((node as NodeModule).pin.ls(), ({ cid }) => String(cid)) };
}

process.on("message", async ({ ask, collect = false }: Instruction) => {
  if (ask === "metrics") process.send?.(await metrics(collect));
  else if (ask === "left") process.send?.(await left());
  else {
    meter?.stop();
    await host.stop();
    process.disconnect();
  }
});
// The parent has ended.
process.once("disconnect", () => process.exit());
process.send?.({ http: host.http, https: host.https, roots } satisfies Ready);
