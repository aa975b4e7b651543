import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { lockHolder, lockRepo } from "#node/storage/repo/lock.ts";
import { inNamespace, withoutNamespaces } from "#test/support/namespaces.ts";
import { emptyFolder } from "./support.ts";

const contender = fileURLToPath(new URL("./contender.ts", import.meta.url));

interface Contained {
  order(what: "take" | "release"): Promise<string>;
  kill(): Promise<void>;
}

async function contained(t: TestContext, folder: string): Promise<Contained> {
  const [program, ...before] = inNamespace;
  const child: ChildProcess = spawn(program, [...before, process.execPath, "--conditions=source", contender, folder], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  t.after(() => child.kill("SIGKILL"));
  const answer = async () => String((await once(child, "message"))[0]);
  await answer();
  return {
    order(what) {
      const told = answer();
      child.send(what);
      return told;
    },
    /** Not of the process that holds the lock, but of the one in front of it: that one ends a little later. */
    async kill() {
      const ended = once(child, "disconnect");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

test("one at a time, also between containers, and free as soon as a holder is killed", {
  skip: withoutNamespaces,
}, async (t) => {
  const folder = await emptyFolder(t);
  const [one, other] = [await contained(t, folder), await contained(t, folder)];
  assert.equal(await one.order("take"), "won");
  const refusal = `lock ${join(folder, "repo.lock")}: someone else has the lock: process `;
  assert.match(await other.order("take"), new RegExp(`^${refusal}\\d+ of another container of this machine$`));
  await assert.rejects(lockRepo(folder), { code: "REPO_LOCKED" });
  assert.match(String(await lockHolder(folder)), /^process \d+ of another container of this machine$/);
  await one.kill();
  // Nobody waits for the lease of a holder that is gone, as the lock of the system tells.
  let told = await other.order("take");
  for (let tries = 0; told !== "won" && tries < 100; tries += 1) told = await other.order("take");
  assert.equal(told, "won");
  await other.order("release");
  await (await lockRepo(folder)).release();
});
