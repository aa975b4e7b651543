/** Encodes RPCs of gossipsub with their length prefix, and splits those that are too long. */
import { RPC } from "@libp2p/gossipsub/message";
import { requireFewFields } from "../../formats/protobuf/count_fields.ts";
import { varintLength, writeVarint } from "../../formats/protobuf/varint.ts";
import { MAX_RPC_FIELDS, MAX_RPC_SIZE } from "./limits.ts";

/**
 * Nested fields of `RPC` in the gossipsub specification: subscriptions, messages, and control
 * messages with the peers of a prune.
 */
const rpcMessage = { 1: {}, 2: {}, 3: { 1: {}, 2: {}, 3: {}, 4: { 2: {} }, 5: {} } };

/**
 * Must be called before an RPC is decoded. @throws NodeError for an RPC with too many fields, and
 * for malformed bytes
 */
export const requireBounded = (rpc: Uint8Array): void => requireFewFields(rpc, rpcMessage, MAX_RPC_FIELDS);

/**
 * Splits an RPC into several with a length prefix each. libp2p responds to a peer that requests
 * many messages with one RPC of any length.
 *
 * @param rpc with its length prefix
 */
export function splitRpc(rpc: Uint8Array): readonly Uint8Array[] {
  const { messages, ...rest } = RPC.decode(rpc.subarray(prefixLength(rpc)));
  const parts: RPC[] = [{ ...rest, messages: [] }];
  let bytes = RPC.encode(parts[0] as RPC).length;
  for (const message of messages) {
    const length = RPC.encode({ subscriptions: [], messages: [message] }).length;
    if (bytes > 0 && bytes + length > MAX_RPC_SIZE) {
      parts.push({ subscriptions: [], messages: [] });
      bytes = 0;
    }
    parts.at(-1)?.messages.push(message);
    bytes += length;
  }
  return parts.map((part) => lengthPrefixed(RPC.encode(part)));
}

function prefixLength(bytes: Uint8Array): number {
  let at = 0;
  while ((bytes[at] as number) >= 0x80) at += 1;
  return at + 1;
}

/** Returns the bytes after their length as a varint. */
export function lengthPrefixed(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(varintLength(bytes.length) + bytes.length);
  writeVarint(whole, 0, bytes.length);
  whole.set(bytes, whole.length - bytes.length);
  return whole;
}
