/** A sandboxed module that uses up whatever it can get, one thing for each route. */
import { raw } from "#test/support/sandbox/relay_acts.ts";

/** The acts, and what the operator reads about the module afterwards. */
export const acts = {
  spins: /did not respond/,
  forks: /ran \d+ programs/,
  "fills its heap": /of memory|out of memory/,
  "allocates buffers": /of memory/,
  "opens files": undefined,
  "fills its disk": /on disk/,
  "floods its log": /left out/i,
  "floods the host with messages": undefined,
} as const satisfies Readonly<Record<string, RegExp | undefined>>;

export type Act = keyof typeof acts;

/** The path of the route that begins an act. */
export const pathOf = (act: Act): string => `/noisy/${Object.keys(acts).indexOf(act)}`;

/** Each goes on until the process is killed. */
const code: Readonly<Record<Act, string>> = {
  spins: "for (;;);",
  forks: `for (let n = 0; n < 100; n += 1) spawn("/usr/bin/env", ["sh", "-c", "while :; do :; done"], { stdio: "ignore" }).on("error", () => 1);`,
  "fills its heap": "for (;;) kept.push(new Array(1000).fill(kept.length));",
  "allocates buffers": "const turn = () => { kept.push(Buffer.alloc(4 << 20, 1)); setImmediate(turn); }; turn();",
  "opens files": `const turn = () => { try { for (;;) openSync(join(tmpdir(), "f" + kept.push(0)), "w"); } catch {} setImmediate(turn); }; turn();`,
  "fills its disk": `const turn = () => { try { writeFileSync(join(module.data_path(), "f" + kept.push(0)), Buffer.alloc(4 << 20)); } catch {} setImmediate(turn); }; turn();`,
  "floods its log": `const turn = () => { for (let n = 0; n < 1000; n += 1) { module.log.info("a line %d", n); console.log("another line %d", n); } setImmediate(turn); }; turn();`,
  "floods the host with messages": `for (;;) call("announce", "noisy-event", { n: 1 });`,
};

export const noisy = `${raw}
import { spawn } from "node:child_process";
import { openSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
export const depends = ["http"];
const kept = [];
export default (module) => module.provides("http", { route: {
  GET: () => String(process.pid),
${Object.values(code)
  .map((act, at) => `  "GET /${at}": () => { setImmediate(() => { ${act} }); return "begun"; },`)
  .join("\n")}
} });
`;

export const steady = `export const depends = ["http"];
export default (module) => module.provides("http", { route: { GET: () => "hello" } });
`;
