/** The stores for an add, in memory. The test controls when the disk is done. */
import { tmpdir } from "node:os";
import { type AdderDeps, addEntries } from "#node/content/adder/adder.ts";
import { addSettings, type UnixfsAddOptions } from "#node/content/adder/settings.ts";
import { Pins } from "#node/content/pins/pins.ts";
import type { AddEntry, AddEvent } from "#node/content/unixfs/add.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { SharedLock } from "#node/util/async/shared_lock.ts";

export class TestVault implements AdderDeps {
  readonly blocks = new BlockService(memoryBlocks());
  readonly wholeBlocks = this.blocks;
  readonly lock = new SharedLock();
  readonly pins = new Pins(this.blocks, memoryMetadata(), this.lock);
  readonly scratch = tmpdir();
  syncs = 0;
  /** Called in place of the disk. */
  disk: () => Promise<void> = async () => {};

  async sync(): Promise<void> {
    this.syncs += 1;
    await this.disk();
  }

  add(
    entries: AsyncIterable<AddEntry>,
    { pin = true, signal, ...options }: UnixfsAddOptions & { pin?: boolean; signal?: AbortSignal } = {},
  ) {
    return addEntries(this, entries, addSettings(options), { pin, signal });
  }

  async pinned(): Promise<string[]> {
    return (await Array.fromAsync(this.pins.list("recursive"))).map(String);
  }
}

export async function* files(...paths: string[]): AsyncGenerator<AddEntry> {
  for (const path of paths) yield file(path);
}

export function file(path: string, text = `content of ${path}`): AddEntry {
  return {
    path,
    kind: "file",
    body: (async function* () {
      yield Buffer.from(text);
    })(),
  };
}

export async function namesOf(events: AsyncIterable<AddEvent>): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of events) names.push(name);
  return names;
}
