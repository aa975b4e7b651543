/**
 * Kills `modhost node migrate` in the middle, and collects garbage in a store during a migration.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { migrateToShared } from "modhost/node";
import { openNode } from "#node/node/open.ts";
import { FaultyHttp, SLOW_DOWN } from "#test/support/engines/faulty_http.ts";
import { noSharedStore } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";
import { Sandbox } from "#test/unit/modules/mod_http_api/cli/support.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { fill, objectsOf, shown, storeIn } from "./support.ts";

const skip = noSharedStore;

/** Whether a request for a segment has this method. */
const ofSegment = (method: string, url: string, wanted: string) => method === wanted && /\.car(\?|$)/.test(url);

test("a killed migration continues in both directions, and its result does not count as complete before", {
  skip,
}, async () => {
  await using sandbox = await Sandbox.make();
  const settings = await storeIn(sandbox.folder);
  await using proxy = await FaultyHttp.start(settings.endpoint ?? "");
  const file = join(sandbox.folder, "host.json");
  await writeFile(file, JSON.stringify({ node_store: { ...settings, endpoint: proxy.endpoint } }));
  await fill(sandbox.repo);
  const before = await shown(sandbox.repo);

  /**
   * Runs the command and kills it after `at` requests for segments, which the proxy does not
   * forward.
   */
  const killed = async (words: readonly string[], method: string, at: number) => {
    let seen = 0;
    proxy.choose = (requestMethod, url) => {
      if (ofSegment(requestMethod, url, method)) seen += 1;
      return seen >= at ? "swallowed" : undefined;
    };
    const child = sandbox.start([...words, "--settings", file], { TMPDIR: sandbox.folder });
    await eventually("segments are requested", () => seen >= at);
    child.kill("SIGKILL");
    assert.equal((await child.ended).code, null);
    proxy.choose = () => undefined;
  };

  await killed(["migrate", "repo", "shared"], "PUT", 4);
  const stored = await objectsOf(settings);
  assert.ok(stored.some((key) => key.endsWith(".car")));
  const host = { repo: join(sandbox.folder, "host"), store: settings };
  const notices: string[] = [];
  const node = await openNode({ ...host, offline: true, onNotice: (sentence) => notices.push(sentence) });
  await node.close();
  assert.match(notices.join("\n"), /^only a part of the repo .+\/repo is in the shared store/m);
  const shownStat = await sandbox.does(["store", "stat", "--settings", file]);
  assert.match(shownStat, /^Only a part of the repo .+\/repo was copied here: run modhost node migrate again$/m);
  const done = await sandbox.does(["migrate", "repo", "shared", "--settings", file]);
  assert.match(done, /^\d+ blocks \(.+\), 3 pins, \d names, 1 key copied to the shared store$/m);
  const all = await objectsOf(settings);
  assert.deepEqual(
    stored.filter((key) => !all.includes(key)),
    [],
  );
  assert.deepEqual(await shown(host), before);
  assert.doesNotMatch(await sandbox.does(["store", "stat", "--settings", file]), /Only a part/);

  await killed(["migrate", "shared", "back"], "GET", 3);
  const { code, stderr } = await sandbox.node(["--repo-dir", "back", "pin", "ls"]);
  assert.equal(code, 1);
  assert.match(stderr, /no IPFS repo found/);
  await sandbox.does(["migrate", "shared", "back", "--like", "repo", "--settings", file]);
  assert.deepEqual(await shown(join(sandbox.folder, "back")), before);
});

test("garbage collection on a host does not remove blocks that are being copied", { skip }, async (t) => {
  const folder = await emptyFolder(t);
  const own = join(folder, "own");
  await fill(own);
  const before = await shown(own);
  const settings = await storeIn(folder);
  await using proxy = await FaultyHttp.start(settings.endpoint ?? "");
  const host = { repo: join(folder, "host"), store: settings };
  const node = await openNode({ ...host, offline: true });
  try {
    let collecting: Promise<unknown> | undefined;
    let isOver = false;
    let seen = 0;
    proxy.choose = (method, url) => {
      if (ofSegment(method, url, "PUT")) seen += 1;
      if (seen < 3 || isOver) return undefined;
      collecting ??= Array.fromAsync(node.collect()).finally(() => {
        isOver = true;
      });
      return ofSegment(method, url, "PUT") ? SLOW_DOWN : undefined;
    };
    await migrateToShared(own, { ...settings, endpoint: proxy.endpoint });
    assert.ok(collecting !== undefined);
    await collecting;
  } finally {
    await node.close();
  }
  assert.deepEqual(await shown(host), before);
});
