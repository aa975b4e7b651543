/** Checks all stored blocks, and removes or fetches again those that are damaged. */
import { CID } from "multiformats/cid";
import { raw } from "../formats/cid/codecs.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { verifyBlocks } from "../storage/blockstore/verify_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { parseDuration } from "../util/go/duration.ts";
import { type CallOptions, readOptions } from "./common.ts";

export interface RepoVerifyOptions extends CallOptions {
  /** Remove corrupt blocks. */
  readonly drop?: boolean | undefined;
  /** Remove corrupt blocks, and fetch them again from peers. @throws NodeError OFFLINE_COMMAND */
  readonly heal?: boolean | undefined;
  /** Timeout for each block: milliseconds, or a duration; `30s` by default, 0 for no limit. */
  readonly healTimeout?: number | string | undefined;
  /** Report blocks as raw CIDs of version 1, whatever CIDs they were stored under. */
  readonly asRaw?: boolean | undefined;
}

export interface RepoVerifyResult {
  /** Description of a corrupt block, or the final result; "" in progress reports. */
  readonly msg: string;
  /** Number of blocks checked so far. */
  readonly progress: number;
}

/** Counts the outcomes of corrupt blocks, and formats them in their fixed order. */
class OutcomeCounts {
  corrupt = 0;
  readonly #outcomes = new Map<string, number>();

  add(end: string): void {
    this.#outcomes.set(end, (this.#outcomes.get(end) ?? 0) + 1);
  }

  get text(): string {
    const outcomes = ["removed", "failed to remove", "healed", "failed to heal"].flatMap((end) => {
      const count = this.#outcomes.get(end);
      return count === undefined ? [] : [`${count} ${end}`];
    });
    return [`verify complete, ${this.corrupt} blocks corrupt`, ...outcomes].join(", ");
  }

  /** Whether corrupt blocks remain, or a removed block could not be fetched again. */
  get haveFailures(): boolean {
    return (
      !this.#outcomes.has("removed") || this.#outcomes.has("failed to remove") || this.#outcomes.has("failed to heal")
    );
  }
}

/** @throws NodeError for an invalid duration */
function healTimeout({ healTimeout = "30s" }: RepoVerifyOptions): number {
  const milliseconds = typeof healTimeout === "number" ? healTimeout : durationIn(healTimeout);
  if (milliseconds < 0) throw failure("OPTION_INVALID", { reason: "heal-timeout must be >= 0" });
  return milliseconds;
}

function durationIn(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw failure("DURATION_INVALID", { reason: `invalid heal-timeout: ${(error as Error).message}` }, error);
  }
}

export async function* verified(node: LowLevelNode, options: RepoVerifyOptions): AsyncGenerator<RepoVerifyResult> {
  const { drop = false, heal = false, asRaw = false } = options;
  const timeout = healTimeout(options);
  if (heal && !node.online) throw failure("OFFLINE_COMMAND");
  const { signal } = readOptions(options);
  const counts = new OutcomeCounts();
  let blocks = 0;
  for await (const { cid, fault } of verifyBlocks(node.blocks.store, signal)) {
    if (fault !== undefined) {
      counts.corrupt += 1;
      const outcomes =
        drop || heal ? await repairBlock(node, cid, counts, { heal, signal, timeout: timeout || undefined }) : [];
      const name = asRaw ? CID.createV1(raw, cid.multihash) : cid;
      yield { msg: [`block ${name} was corrupt (${fault})`, ...outcomes].join(", "), progress: 0 };
    }
    blocks += 1;
    yield { msg: "", progress: blocks };
  }
  if (counts.corrupt > 0 && counts.haveFailures) throw failure("BLOCKS_CORRUPT", { counts: counts.text });
  yield { msg: counts.corrupt > 0 ? counts.text : "verify complete, all blocks validated.", progress: 0 };
}

/** Removes a corrupt block, and fetches it again with `heal`. Resolves to the outcomes. */
async function repairBlock(
  node: LowLevelNode,
  cid: CID,
  counts: OutcomeCounts,
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
    const bytes = await node.blocks.get(cid, readOptions(options));
    await node.blocks.store.put(forms.map((form) => ({ cid: form, bytes })));
    counts.add("healed");
    return ["removed", "healed"];
  } catch (error) {
    options.signal?.throwIfAborted();
    counts.add("failed to heal");
    return ["removed", `failed to heal (${error instanceof Error ? error.message : error})`];
  }
}

/**
 * Removes all forms of a block if it is still corrupt: they share the same bytes. Resolves to the
 * removed forms.
 */
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
