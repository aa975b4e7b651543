/**
 * The gateway under attack, in a process of its own, which tells whoever started it how it fares.
 */
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

export interface Figures {
  /** Bytes of the process itself: heap, buffers, libraries' own. */
  readonly memory: number;
  /**
   * Milliseconds of CPU time for which the event loop was held in one piece, at most, since the
   * last call.
   */
  readonly turn: number;
  readonly files: number;
  /** Lines of the log about faults of the server. */
  readonly faults: readonly string[];
}

/** Told once nobody holds the lock of the store any more. */
export interface Left {
  readonly pins: readonly string[];
}

export interface Asked {
  readonly ask: "figures" | "left" | "stop";
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

async function figures(collect: boolean): Promise<Figures> {
  // Buffers are freed after the first, in a thread of its own.
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

async function left(): Promise<Left> {
  const { lock } = (node as NodeModule).lowLevel;
  // Nobody reads or adds any more.
  (await lock.acquireExclusive(undefined))();
  return { pins: await Array.fromAsync((node as NodeModule).pin.ls(), ({ cid }) => String(cid)) };
}

process.on("message", async ({ ask, collect = false }: Asked) => {
  if (ask === "figures") process.send?.(await figures(collect));
  else if (ask === "left") process.send?.(await left());
  else {
    meter?.stop();
    await host.stop();
    process.disconnect();
  }
});
// Whoever started it has gone.
process.once("disconnect", () => process.exit());
process.send?.({ http: host.http, https: host.https, roots } satisfies Ready);
