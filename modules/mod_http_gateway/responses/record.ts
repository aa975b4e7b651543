/**
 * Responds with the record of a name, signed by its key, so that a client need not trust this
 * gateway.
 */
import { createHash } from "node:crypto";
import { parsePeerId } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { headerText } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import { keyOf } from "../request/path.ts";

const NS_PER_SECOND = 1_000_000_000n;

/** Returns the Etag of a record. */
export const recordTag = (bytes: Uint8Array): string =>
  `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;

/** Converts the nanoseconds of a record. */
export const secondsOf = (ttl: bigint): number => Number(ttl / NS_PER_SECOND);

export const secondsUntil = (validity: string): number => Math.floor((Date.parse(validity) - Date.now()) / 1000);

/** @throws {Refusal} 400 for an invalid key, 404 if there is no record */
export async function recordResponse(call: GatewayCall): Promise<ResponseFields> {
  const { node, target, path, request, settings, reading } = call;
  if (target.namespace !== "ipns") throw new Refusal(400, `${path} is not an IPNS link`);
  if (target.segments.length > 0) throw new Refusal(400, "cannot find ipns key for subpath");
  const key = keyOf(target.root);
  if (key === undefined) throw new Refusal(400, `${target.root} is not a key, so there is no signed record of it`);
  node.lowLevel.denylists.requirePath("ipns", target.root);
  const { offline, signal } = reading;
  const record = await node.lowLevel.names.record(parsePeerId(key), { offline, signal });
  if (record === undefined) throw new Refusal(404, `failed to resolve ${path}: no record was found`);
  const { bytes, ttl, validity } = record;
  const etag = recordTag(bytes);
  const seconds = Math.min(secondsOf(ttl), secondsUntil(validity));
  const headers = {
    ...settings.headers,
    etag,
    cache_control: seconds > 0 ? `public, max-age=${seconds}` : undefined,
    x_ipfs_path: headerText(path),
    ...savedHeaders(call, "ipns-record", `${key}.ipns-record`),
  };
  return conditionalResponse(request, [etag], headers) ?? { headers, body: bytes };
}
