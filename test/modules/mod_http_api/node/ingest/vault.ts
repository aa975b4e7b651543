/** A place to add to, in memory, whose disk answers when the test says so. */
import { tmpdir } from "node:os";
import { SharedLock } from "../../../../../modules/mod_http_api/node/async/lock.ts";
import { Blocks } from "../../../../../modules/mod_http_api/node/blocks/blocks.ts";
import { memoryBlocks } from "../../../../../modules/mod_http_api/node/blocks/memory.ts";
import { ingest, type Vault } from "../../../../../modules/mod_http_api/node/ingest/ingest.ts";
import { type AddOptions, addSettings } from "../../../../../modules/mod_http_api/node/ingest/settings.ts";
import { memoryMetadata } from "../../../../../modules/mod_http_api/node/metadata/memory.ts";
import { Pins } from "../../../../../modules/mod_http_api/node/pins/pins.ts";
import type { AddEntry, AddEvent } from "../../../../../modules/mod_http_api/node/unixfs/add.ts";

export class TestVault implements Vault {
  readonly blocks = new Blocks(memoryBlocks());
  readonly wholeBlocks = this.blocks;
  readonly lock = new SharedLock();
  readonly pins = new Pins(this.blocks, memoryMetadata(), this.lock);
  readonly scratch = tmpdir();
  syncs = 0;
  /** Replaces what the disk does. */
  disk: () => Promise<void> = async () => {};

  async sync(): Promise<void> {
    this.syncs += 1;
    await this.disk();
  }

  add(
    entries: AsyncIterable<AddEntry>,
    { pin = true, signal, ...options }: AddOptions & { pin?: boolean; signal?: AbortSignal } = {},
  ) {
    return ingest(this, entries, addSettings(options), { pin, signal });
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
