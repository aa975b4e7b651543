/**
 * `npm run vectors`: plays the test vectors of the reference against a server.
 *
 * npm run vectors -- [--level 0.43] [--left] [--api http://127.0.0.1:5280] [--store shared] [--only
 * REGEX] [--verbose]
 *
 * Without `--api` it starts a server on a new repo. A server that is named loses its pins, files
 * and blocks. `--left` deletes vectors of level 0.43 that pass from the list of those that are
 * left. docs/reference/vectors.md lists intended differences with their reasons. A difference that
 * is listed there and does not exist is an error, too.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";
import { storeEnvironment } from "#test/support/engines/store_option.ts";
import { RpcServer } from "#test/support/rpc_server.ts";
import { Player } from "./play.ts";
import { groups, playGroup, type Result, report, shortenLeft } from "./report.ts";

const { values } = parseArgs({
  options: {
    api: { type: "string" },
    store: { type: "string" },
    level: { type: "string", default: "0.9" },
    left: { type: "boolean" },
    only: { type: "string", default: "" },
    verbose: { type: "boolean" },
  },
});

const level: LevelName = values.level === "0.43" ? "0.43" : "0.9";

async function run(base: string): Promise<void> {
  using player = new Player(base);
  const only = new RegExp(values.only);
  const results: Result[] = [];
  for (const group of groups(({ group, id }) => only.test(`${group}/${id}`), level)) {
    results.push(...(await playGroup(player, group)));
  }
  const { text, ok } = report(results, { verbose: values.verbose === true, whole: values.only === "", level });
  if (values.left === true && level === "0.43") shortenLeft(results);
  console.log(text);
  process.exitCode = ok ? 0 : 1;
}

if (values.api !== undefined) await run(values.api);
else {
  const folder = await mkdtemp(join(tmpdir(), "modhost-vectors-"));
  try {
    const env = {
      MODHOST_MODULES_ENABLED: "http,http_api",
      MODHOST_API_LEVEL: level,
      ...(await storeEnvironment(values.store)),
    };
    await using server = await RpcServer.start({ folder, env });
    await run(server.url);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
