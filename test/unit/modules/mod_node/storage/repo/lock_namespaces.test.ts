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
  const reply = async () => String((await once(child, "message"))[0]);
  await reply();
  return {
    order(what) {
      const outcome = reply();
      child.send(what);
      return outcome;
    },
    /**
     * Waits for the parent of the process that has the lock, because the parent ends a little
     * later.
     */
    async kill() {
      const ended = once(child, "disconnect");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

test("only one holder at a time, even between containers, and free as soon as a holder is killed", {
  skip: withoutNamespaces,
}, async (t) => {
  const folder = await emptyFolder(t);
  const one = await contained(t, folder);
  const other = await contained(t, folder);
  assert.equal(await one.order("take"), "won");
  const refusal = `lock ${join(folder, "repo.lock")}: someone else has the lock: process `;
  assert.match(await other.order("take"), new RegExp(`^${refusal}\\d+ of another container of this machine$`));
  await assert.rejects(lockRepo(folder), { code: "REPO_LOCKED" });
  assert.match(String(await lockHolder(folder)), /^process \d+ of another container of this machine$/);
  await one.kill();
  // The system lock shows that the holder is gone, so nobody waits for its lease.
  let outcome = await other.order("take");
  for (let tries = 0; outcome !== "won" && tries < 100; tries += 1) outcome = await other.order("take");
  assert.equal(outcome, "won");
  await other.order("release");
  await (await lockRepo(folder)).release();
});
