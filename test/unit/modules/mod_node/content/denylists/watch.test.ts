import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { watchDenylists } from "#node/content/denylists/watch.ts";
import { eventually } from "#test/support/eventually.ts";

test("a list behind a link is read again once it is watched, because it may have changed in between", async (t) => {
  const home = await mkdtemp(join(tmpdir(), "denylists-"));
  t.after(() => rm(home, { recursive: true }));
  const link = join(home, "a.deny");
  await writeFile(join(home, "elsewhere"), "");
  await symlink(join(home, "elsewhere"), link);
  let times = 0;
  const lists = {
    folders: [],
    files: [] as string[],
    async reread() {
      times += 1;
      lists.files = [link];
    },
  };
  t.after(watchDenylists(lists, assert.fail));
  await eventually("the second reading", () => times === 2);
});
