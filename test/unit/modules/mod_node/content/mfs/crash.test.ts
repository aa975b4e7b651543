import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { entriesIn } from "#node/content/mfs/list.ts";
import { cidAt } from "#node/content/mfs/operations.ts";
import { namespacePath } from "#node/content/mfs/path.ts";
import { fileAt } from "#node/content/mfs/write_file.ts";
import { readFile } from "#node/content/unixfs/read.ts";
import { openNode } from "#node/node/open.ts";
import { readUpTo } from "#node/util/async/read_all.ts";

interface Report {
  readonly worker: number;
  readonly count: number;
  readonly step: "logged" | "moved" | "removed";
}

const script = fileURLToPath(new URL("killed.ts", import.meta.url));

async function killedAfter(repo: string, reportCount: number): Promise<Report[]> {
  const child = fork(script, [repo], { execArgv: ["--conditions=source"] });
  const reports: Report[] = [];
  child.on("message", (message: Report) => {
    reports.push(message);
    if (reports.length === reportCount) child.kill("SIGKILL");
  });
  await once(child, "exit");
  return reports;
}

test("after kill -9 all finished calls are complete, and every other call is complete or without effect", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-namespace-"));
  try {
    // The second kill happens after a root was stored.
    for (const reportCount of [90, 1200]) {
      const repo = join(folder, String(reportCount));
      const reports = await killedAfter(repo, reportCount);
      await using node = Object.assign(await openNode({ repo }), {
        async [Symbol.asyncDispose]() {
          await node.close();
        },
      });
      const read = node.reader();
      for (const worker of [0, 1, 2]) {
        const last = (step: Report["step"]) =>
          reports.findLast((one) => one.worker === worker && one.step === step)?.count ?? -1;
        const { node: log } = await fileAt(node.files, namespacePath(`/w${worker}/log`), {});
        const lines = Buffer.from(await readUpTo(readFile(log, read))).toString();
        const count = lines.length / 8;
        assert.equal(lines, Array.from({ length: count }, (_, at) => `${String(at).padStart(7, "0")}\n`).join(""));
        assert.ok(count > last("logged"), `${count} lines, and ${last("logged")} was answered`);
        const cid = await cidAt(node.files, namespacePath(`/w${worker}`), {});
        const entries = await Array.fromAsync(entriesIn(cid, await read(cid), read));
        const done = entries.map(({ name }) => /^done(\d+)$/.exec(name)?.[1]).filter((found) => found !== undefined);
        const numbers = done.map(Number).sort((one, other) => one - other);
        const made = count - 1;
        assert.ok((numbers.at(-1) ?? -1) >= last("moved"), `${numbers} and ${last("moved")} was moved`);
        assert.ok((numbers[0] ?? 0) >= last("removed") - 4, `${numbers} and ${last("removed")} was removed`);
        // Files are made one after the other. So there is no gap, and a file that is being moved
        // has one name only.
        assert.deepEqual(
          numbers,
          numbers.map((_, at) => (numbers[0] as number) + at),
        );
        const fresh = entries.filter(({ name }) => name.startsWith("new")).map(({ name }) => name);
        assert.ok(fresh.length === 0 || (fresh.length === 1 && fresh[0] === `new${made}` && !numbers.includes(made)));
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
