/** Gets raw records of names, and accepts records that were signed elsewhere. */
import { type PeerId, parsePeerId } from "../formats/peer_id.ts";
import { inspectRecord, type RecordInspection, recordFault } from "../network/ipns_record/inspect.ts";
import { MAX_RECORD_SIZE } from "../network/ipns_record/record.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { readUpTo } from "../util/async/read_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import { type ByteSource, type CallOptions, type PeerName, piecesOf, readOptions } from "./common.ts";

export interface NamePutOptions extends CallOptions {
  /** Accept any bytes and any sequence number. */
  readonly force?: boolean | undefined;
  /** While the node is offline, store the record on this machine instead of failing. */
  readonly allowOffline?: boolean | undefined;
  /** Publish over the routers of `Ipns.DelegatedPublishers`. */
  readonly allowDelegated?: boolean | undefined;
}

/** Maximum size in bytes of a file that may contain a record. */
export const MAX_RECORD_FILE = 1024 * 1024;

const withoutNamespace = (name: PeerName): string => String(name).replace(/^\/ipns\//, "");

/** @throws NodeError when there is none */
export async function getRecord(node: LowLevelNode, name: PeerName, options: CallOptions = {}): Promise<Uint8Array> {
  const found = await node.names.record(parsePeerId(withoutNamespace(name)), readOptions(options));
  if (found === undefined) throw node.online ? failure("ROUTING_NOT_FOUND") : failure("OFFLINE");
  return found.bytes;
}

/** @throws NodeError as `NameApi.put` */
export async function putRecord(
  node: LowLevelNode,
  given: PeerName,
  record: ByteSource,
  { force = false, allowOffline, allowDelegated, ...options }: NamePutOptions = {},
): Promise<{ name: PeerId; value: string }> {
  requirePublishers(node, { allowOffline, allowDelegated });
  const name = nameOf(given);
  const bytes = await readUpTo(piecesOf(record), MAX_RECORD_FILE);
  if (bytes.length === 0) throw failure("RECORD_INVALID", { reason: "record is empty" });
  if (!force) await requireNext(node, name, bytes);
  if (!node.online && allowOffline !== true) {
    const delegates = "`--allow-delegated` if Ipns.DelegatedPublishers are set up";
    throw failure("OFFLINE_NOT_ALLOWED", {
      reason: `can't put while offline: pass \`--allow-offline\` to store locally or ${delegates}`,
    });
  }
  const { signal } = readOptions(options);
  await node.names.put(name, bytes, { signal, allowOffline }).catch((error: unknown) => {
    if (!force || !NodeError.is(error)) throw error;
  });
  return { name, value: valueIn(bytes) };
}

/** Returns the path that a record contains; empty for bytes that are not a record. */
function valueIn(bytes: Uint8Array): string {
  try {
    return inspectRecord(bytes).entry.value;
  } catch {
    return "";
  }
}

/**
 * @throws NodeError for bytes that are not a record of that name, and for a record that is not
 * newer than the stored one
 */
async function requireNext(node: LowLevelNode, name: PeerId, bytes: Uint8Array): Promise<void> {
  if (bytes.length > MAX_RECORD_SIZE) {
    throw failure("INPUT_TOO_LARGE", {
      reason: `record exceeds maximum size of ${MAX_RECORD_SIZE} bytes, use --force to skip size check`,
    });
  }
  const { entry } = recordIn(bytes);
  const fault = await recordFault(name, bytes);
  if (fault !== undefined) throw failure("RECORD_INVALID", { reason: `record validation failed: ${fault}` });
  const known = await node.names.record(name, { offline: true });
  if (known === undefined || known.sequence < entry.sequence || Buffer.compare(known.bytes, bytes) === 0) return;
  const order = `existing IPNS record has sequence ${known.sequence} >= new record sequence ${entry.sequence}`;
  throw failure("RECORD_OUTDATED", { reason: `${order}, use 'ipfs name put --force' to skip this check` });
}

function recordIn(bytes: Uint8Array): RecordInspection {
  try {
    return inspectRecord(bytes);
  } catch (error) {
    throw failure("RECORD_INVALID", { reason: `invalid IPNS record: ${(error as Error).message}` }, error);
  }
}

function nameOf(given: PeerName): PeerId {
  try {
    return parsePeerId(withoutNamespace(given));
  } catch (error) {
    const reason = (error as NodeError).details?.later;
    const text = reason === undefined ? (error as Error).message : `failed to parse peer ID: ${reason}`;
    throw new NodeError("INVALID_PEER_ID", `invalid IPNS name: ${text}`, { cause: error });
  }
}

/** @throws NodeError if both options are given, and if no delegated publishers are configured */
export function requirePublishers(
  { repo }: Pick<LowLevelNode, "repo">,
  { allowOffline, allowDelegated }: Pick<NamePutOptions, "allowOffline" | "allowDelegated">,
): void {
  if (allowDelegated !== true) return;
  if (allowOffline === true)
    throw failure("OPTION_CONFLICT", { reason: "cannot use both --allow-offline and --allow-delegated flags" });
  if ((repo.config.value("Ipns.DelegatedPublishers") ?? []).length > 0) return;
  const remedy = "add Ipns.DelegatedPublishers or use --allow-offline for local-only publishing";
  throw failure("PUBLISHERS_MISSING", { reason: `no delegated publishers configured: ${remedy}` });
}
