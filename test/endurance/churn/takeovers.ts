/** Lets one process after another take over a server, under requests, uploads and downloads. */
import { readFile } from "node:fs/promises";
import { type TakeoverMetrics, takeoverLoad, untilGone } from "#test/support/takeover_load.ts";
import { Program } from "#test/unit/core/cli/spawned.ts";

export interface TakeoversReport extends TakeoverMetrics {
  readonly takeovers: number;
  /** Milliseconds of the takeover commands, the shortest first. */
  readonly times: readonly number[];
  /** The count that processes pass on to each other, and its expected value. */
  readonly carried: readonly [number, number];
}

/** Transfers take longer than most takeovers, so some are active at each of them. */
export async function takeOverAgain(takeovers: number): Promise<TakeoversReport> {
  const source = await readFile(new URL("../../support/takeover_module.mjs", import.meta.url), "utf8");
  const config = {
    modules_enabled: ["http", "http_admin", "./mod_http_a.mjs"],
    http_ports: [0],
    admin_port: 0,
    http_interfaces: ["127.0.0.1"],
    https_ports: [],
    http_log: false,
    log_level: "error",
  };
  const files = { "mod_http_a.mjs": source, "modhost.config.json": JSON.stringify(config) };
  await using program = await Program.in(files);
  // The config file sets the ports.
  const env = { MODHOST_HTTP_PORTS: undefined, MODHOST_HTTPS_PORTS: undefined };
  const server = await program.serve(["run", "--json"], env);
  const url = `http://127.0.0.1:${server.started.ports[0]?.port}`;
  const get = async (path: string) => (await fetch(`${url}${path}`, { headers: { Connection: "close" } })).text();
  const load = takeoverLoad(url, { pieces: 20, pauseMs: 100, clients: 4 });
  const times: number[] = [];
  const failures: string[] = [];
  try {
    await load.begun();
    await get("/a/count");
    for (let at = 0; at < takeovers; at += 1) {
      const begun = performance.now();
      const { code, stdout, stderr } = await program.run(["run", "--takeover", "--json"], env);
      times.push(performance.now() - begun);
      if (code !== 0) failures.push(`takeover ${at + 1}: ${stdout}${stderr}`);
      await get("/a/count");
    }
    const metrics = await load.end();
    const count = Number(await get("/a/count"));
    const sorted = times.toSorted((one, other) => one - other);
    return {
      ...metrics,
      lost: [...failures, ...metrics.lost],
      takeovers,
      times: sorted,
      carried: [count, takeovers + 2],
    };
  } finally {
    await untilGone(Number(await get("/a/pid")));
  }
}
