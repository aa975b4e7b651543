/** Checks all stored blocks, and removes or fetches again those that are damaged. */
import { CID } from "multiformats/cid";
import { raw } from "../formats/cid/codecs.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { verifyBlocks } from "../storage/blockstore/verify_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { parseDuration } from "../util/go/duration.ts";
import { type CallOptions, reading } from "./common.ts";

export interface RepoVerifyOptions extends CallOptions {
  /** Remove corrupt blocks. */
  readonly drop?: boolean | undefined;
  /** Remove corrupt blocks, and fetch them again from peers. @throws NodeError OFFLINE_COMMAND */
  readonly heal?: boolean | undefined;
  /** For each block: milliseconds, or a duration; `30s` by default, 0 for no limit. */
  readonly healTimeout?: number | string | undefined;
  /** Name blocks as raw ones of CIDs of version 1, whatever they were stored as. */
  readonly asRaw?: boolean | undefined;
}

export interface RepoVerifyResult {
  /** What is wrong with a block, or the final result; "" in progress reports. */
  readonly msg: string;
  /** Number of blocks checked so far. */
  readonly progress: number;
}

/** How many blocks came to which end, in the order in which it is told. */
class Counts {
  corrupt = 0;
  readonly #ends = new Map<string, number>();

  add(end: string): void {
    this.#ends.set(end, (this.#ends.get(end) ?? 0) + 1);
  }

  get text(): string {
    const ends = ["removed", "failed to remove", "healed", "failed to heal"].flatMap((end) => {
      const count = this.#ends.get(end);
      return count === undefined ? [] : [`${count} ${end}`];
    });
    return [`verify complete, ${this.corrupt} blocks corrupt`, ...ends].join(", ");
  }

  /** Whether something is still as bad as it was, or gone that was to come back. */
  get areBad(): boolean {
    return !this.#ends.has("removed") || this.#ends.has("failed to remove") || this.#ends.has("failed to heal");
  }
}

/** @throws NodeError for a time that is none */
function healTimeout({ healTimeout = "30s" }: RepoVerifyOptions): number {
  const milliseconds = typeof healTimeout === "number" ? healTimeout : durationIn(healTimeout);
  if (milliseconds < 0) throw new NodeError("heal-timeout must be >= 0");
  return milliseconds;
}

function durationIn(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new NodeError(`invalid heal-timeout: ${(error as Error).message}`, { cause: error });
  }
}

export async function* verified(node: LowLevelNode, options: RepoVerifyOptions): AsyncGenerator<RepoVerifyResult> {
  const { drop = false, heal = false, asRaw = false } = options;
  const timeout = healTimeout(options);
  if (heal && !node.online) throw failure("OFFLINE_COMMAND");
  const { signal } = reading(options);
  const counts = new Counts();
  let blocks = 0;
  for await (const { cid, fault } of verifyBlocks(node.blocks.store, signal)) {
    if (fault !== undefined) {
      counts.corrupt += 1;
      const ends = drop || heal ? await mend(node, cid, counts, { heal, signal, timeout: timeout || undefined }) : [];
      const name = asRaw ? CID.createV1(raw, cid.multihash) : cid;
      yield { msg: [`block ${name} was corrupt (${fault})`, ...ends].join(", "), progress: 0 };
    }
    blocks += 1;
    yield { msg: "", progress: blocks };
  }
  if (counts.corrupt > 0 && counts.areBad) throw failure("BLOCKS_CORRUPT", { counts: counts.text });
  yield { msg: counts.corrupt > 0 ? counts.text : "verify complete, all blocks validated.", progress: 0 };
}

/** Removes a corrupt block, and fetches it again with `heal`; tells what came of it. */
async function mend(
  node: LowLevelNode,
  cid: CID,
  counts: Counts,
  { heal, ...options }: CallOptions & { readonly heal: boolean },
): Promise<string[]> {
  let forms: readonly CID[];
  try {
    forms = await remove(node, cid, options.signal);
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    counts.add("failed to remove");
    return [`failed to remove (${error.message})`];
  }
  counts.add("removed");
  if (!heal) return ["removed"];
  try {
    const bytes = await node.blocks.get(cid, reading(options));
    await node.blocks.store.put(forms.map((form) => ({ cid: form, bytes })));
    counts.add("healed");
    return ["removed", "healed"];
  } catch (error) {
    options.signal?.throwIfAborted();
    counts.add("failed to heal");
    return ["removed", `failed to heal (${error instanceof Error ? error.message : error})`];
  }
}

/** Removes all forms of a block that is still corrupt: they have the same bytes. Gives those that there were. */
async function remove(node: LowLevelNode, cid: CID, signal: AbortSignal | undefined): Promise<readonly CID[]> {
  const { store } = node.blocks;
  const release = await node.lock.acquireExclusive(signal);
  try {
    const isSound = await store.check(cid).catch(() => false);
    if (isSound !== false) return [];
    const forms = await store.forms(cid);
    await store.delete(forms.length === 0 ? [cid] : forms);
    return forms;
  } finally {
    release();
  }
}
