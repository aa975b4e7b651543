import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { RpcServer } from "#test/support/rpc_server.ts";
import { exchange } from "#test/bench/node/client.ts";
import { cpuSeconds } from "#test/bench/node/usage.ts";
const [launcher, rounds, prof, online] = process.argv.slice(2);
const folder = await mkdtemp("/tmp/b/fl-");
const env = online ? {} : { MODHOST_NODE_OFFLINE: "true" };
const start = async (nodeFlags: string[] = []) => { const t0 = performance.now(); const s = await RpcServer.start({ folder, launcher, env, nodeFlags }); await exchange(s.url, "/api/v0/version"); return { s, ms: performance.now() - t0, cpu: cpuSeconds(s.pid) }; };
const first = await start(); await new Promise((r) => setTimeout(r, 7000)); await first.s.stop();
const v: number[] = [], c: number[] = [];
for (let i = 0; i < Number(rounds); i++) { const { s, ms, cpu } = await start(); v.push(ms); c.push(cpu); await s.stop(); }
const med = (x: number[]) => x.sort((a, b) => a - b)[x.length >> 1]!;
console.log("ms", med(v).toFixed(0), `(${v[0]!.toFixed(0)}-${v.at(-1)!.toFixed(0)})`, "cpu", med(c).toFixed(3));
if (prof === "prof") {
  for (let k = 0; k < 6; k++) { const { s } = await start(["--cpu-prof", "--cpu-prof-interval=100", `--cpu-prof-dir=${folder}/prof`]); await s.stop(); }
  const F = new Map<string, number>(), I = new Map<string, number>(); let T = 0;
  for (const f of await readdir(`${folder}/prof`)) {
    const p = JSON.parse(await readFile(`${folder}/prof/${f}`, "utf8"));
    const by = new Map<number, any>(p.nodes.map((n: any) => [n.id, n])), par = new Map<number, number>();
    for (const n of p.nodes) for (const c of n.children ?? []) par.set(c, n.id);
    const key = (n: any) => `${n.callFrame.functionName || "(anonymous)"} ${n.callFrame.url.split("/").slice(-1)}:${n.callFrame.lineNumber}:${n.callFrame.columnNumber}`;
    const flat = new Map<string, number>(), incl = new Map<string, number>(); let total = 0;
    p.samples.forEach((id: number, i: number) => { const n = by.get(id); const d = p.timeDeltas[i]; if (/idle/.test(n.callFrame.functionName)) return; total += d; flat.set(key(n), (flat.get(key(n)) ?? 0) + d); const seen = new Set<string>(); for (let x: number | undefined = id; x !== undefined; x = par.get(x)) { const k = key(by.get(x)); if (!seen.has(k)) { seen.add(k); incl.set(k, (incl.get(k) ?? 0) + d); } } });
    T += total; for (const [k, v] of flat) F.set(k, (F.get(k) ?? 0) + v / 6); for (const [k, v] of incl) I.set(k, (I.get(k) ?? 0) + v / 6); }
 {
    const show = (m: Map<string, number>, n: number) => [...m].sort((a, b) => b[1] - a[1]).slice(0, n).map(([k, v]) => `  ${(v / 1000).toFixed(1)} ${k}`).join("\n");
    console.log("total", T / 6000); console.log(show(F, 45)); console.log("incl"); console.log(show(new Map([...I].filter(([k]) => /\.(ts|js|cjs|mjs) program/.test(k))), 150));
  }
}
await rm(folder, { recursive: true, force: true });
process.exit();
