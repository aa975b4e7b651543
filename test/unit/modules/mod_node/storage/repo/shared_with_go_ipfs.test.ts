import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { createNode } from "modhost/node";
import { lockRepo } from "#node/storage/repo/lock.ts";
import { withoutGoIpfs } from "#test/support/go_ipfs.ts";
import { emptyFolder } from "./support.ts";

const program = process.env.GO_IPFS ?? "";
const later = '"Later": {"z": 1e3, "a": 12345678901234567890}, "API": {"Later": 1.0, ';

/** A repo that go-ipfs has made, and its program. */
async function goRepo(t: TestContext) {
  const repo = await emptyFolder(t);
  const env = { ...process.env, IPFS_PATH: repo };
  const run = async (...args: readonly string[]) => (await promisify(execFile)(program, args, { env })).stdout;
  await run("init", "--profile=test");
  return { repo, env, run };
}

test("this node and go-ipfs are both refused while the other one has the repo", { skip: withoutGoIpfs }, async (t) => {
  const { repo, env, run } = await goRepo(t);
  const lock = await lockRepo(repo);
  await assert.rejects(run("pin", "ls"), { stderr: /repo\.lock: someone else has the lock/ });
  await lock.release();
  assert.match(await run("pin", "ls"), /recursive/);

  const daemon = spawn(program, ["daemon", "--offline"], { env, stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => daemon.kill("SIGKILL"));
  for await (const line of createInterface(daemon.stdout)) if (line === "Daemon is ready") break;
  daemon.stdout.resume();
  await assert.rejects(createNode({ repo, offline: true }), {
    code: "REPO_LOCKED",
    message: `lock ${join(repo, "repo.lock")}: someone else has the lock`,
  });
  const ended = once(daemon, "exit");
  daemon.kill("SIGKILL");
  await ended;
  await (await createNode({ repo, offline: true })).close();
});

test("a config that this node has changed is valid for go-ipfs and complete", {
  skip: withoutGoIpfs,
}, async (t) => {
  const { repo, run } = await goRepo(t);
  const file = join(repo, "config");
  await writeFile(file, (await readFile(file, "utf8")).replace('"API": {', later));
  const before = (await readFile(file, "utf8")).replaceAll(/\s/g, "");
  const node = await createNode({ repo, offline: true });
  await node.config.set("Gateway.RootRedirect", "/x");
  await node.config.profiles.apply("lowpower");
  await node.config.replace(await node.config.getAll());
  await node.close();
  const after = (await readFile(file, "utf8")).replaceAll(/\s/g, "");
  const changes = [
    ['"RootRedirect":""', '"RootRedirect":"/x"'],
    ['"Routing":{"Type":"dht"}', '"Routing":{"Type":"dhtclient"}'],
    ['"AutoNAT":{}', '"AutoNAT":{"ServiceMode":"disabled"}'],
    ['"LowWater":600,"HighWater":900,"GracePeriod":"20s"', '"LowWater":20,"HighWater":40,"GracePeriod":"1m0s"'],
    ['"Interval":"12h"', '"Interval":"0"'],
  ] as const;
  assert.equal(
    after,
    changes.reduce((text, [old, now]) => text.replace(old, now), before),
  );
  assert.equal((await run("config", "Gateway.RootRedirect")).trim(), "/x");
  assert.match(await run("pin", "ls"), /recursive/);
});
