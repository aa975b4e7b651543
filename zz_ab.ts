import { mkdtemp, rm } from "node:fs/promises";
import { RpcServer } from "#test/support/rpc_server.ts";
import { exchange } from "#test/bench/node/client.ts";
import { cpuSeconds } from "#test/bench/node/usage.ts";
const [rounds, online, ...names] = process.argv.slice(2);
const env = online === "on" ? {} : { MODHOST_NODE_OFFLINE: "true" };
const v: Record<string, number[]> = {}, c: Record<string, number[]> = {}; const folders: Record<string, string> = {};
const start = async (n: string) => { const folder = (folders[n] ??= await mkdtemp("/tmp/b/fl-")); const t0 = performance.now(); const s = await RpcServer.start({ folder, launcher: `/tmp/b/pkg/${n}/node_modules/modhost/core/cli/launch.mjs`, env }); await exchange(s.url, "/api/v0/version"); return { s, ms: performance.now() - t0, cpu: cpuSeconds(s.pid) }; };
for (const n of names) { const f = await start(n); await new Promise((r) => setTimeout(r, 6500)); await f.s.stop(); }
for (let i = 0; i < Number(rounds); i++) for (const n of names) { const { s, ms, cpu } = await start(n); (v[n] ??= []).push(ms); (c[n] ??= []).push(cpu); await s.stop(); }
const med = (x: number[]) => x.sort((a, b) => a - b)[x.length >> 1]!;
for (const n of names) { console.log(n, "ms", med(v[n]!).toFixed(0), `(${v[n]![0]!.toFixed(0)}-${v[n]!.at(-1)!.toFixed(0)})`, "cpu", med(c[n]!).toFixed(3), "mean cpu", (c[n]!.reduce((a, b) => a + b, 0) / c[n]!.length).toFixed(3)); await rm(folders[n]!, { recursive: true, force: true }); }
process.exit();
