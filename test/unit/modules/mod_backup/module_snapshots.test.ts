/**
 * The snapshots of modules are released when the backup is over, whatever one of the modules does.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { BackupItem, BackupSnapshot, Module, OwnedItem } from "#core/types.ts";
import { runBackup } from "#modules/mod_backup/run.ts";

describe("the snapshot of a module", () => {
  let folder: string;
  let released: string[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "held-data-"));
    await mkdir(join(folder, "data"));
    released = [];
  });
  afterEach(() => rm(folder, { recursive: true }));

  const item = (name: string, more: Partial<BackupSnapshot> = {}): OwnedItem<BackupItem> => {
    const release = () => released.push(name);
    const snapshot = async () => ({ folders: { store: `/srv/${name}` }, files: [], release, ...more });
    return { item: { snapshot }, owner: { name, host: "*" } } as unknown as OwnedItem<BackupItem>;
  };
  const backUp = (...items: OwnedItem<BackupItem>[]) => {
    const server = { status: () => ({ data_path: join(folder, "data") }) };
    const module = { server, get_option_object: () => undefined } as unknown as Module;
    const deps = { module, items, settings: { to: join(folder, "backups") }, include: [] };
    return runBackup(deps as unknown as Parameters<typeof runBackup>[0], {
      signal: new AbortController().signal,
      progress: () => undefined,
    });
  };
  const fail = () => {
    throw new Error("it is stuck");
  };

  test("is released even if another release fails, and the backup reports that failure", async () => {
    const { warnings } = await backUp(item("first", { release: fail }), item("second"));
    assert.deepEqual(released, ["second"]);
    assert.deepEqual(warnings, ["The data of the module first could not be released: it is stuck"]);
  });

  test("is released if the folders of a module are invalid", async () => {
    const broken = { store: undefined } as unknown as BackupSnapshot["folders"];
    await assert.rejects(backUp(item("first"), item("second", { folders: broken })), TypeError);
    assert.deepEqual(released, ["first", "second"]);
  });

  test("is released if another module fails to take its snapshot, at once or later", async () => {
    const failing = { item: { snapshot: fail }, owner: { name: "bad", host: "*" } } as unknown as OwnedItem<BackupItem>;
    await assert.rejects(backUp(item("first"), failing), /The data of the module bad cannot be backed up: it is stuck/);
    assert.deepEqual(released, ["first"]);
  });
});
