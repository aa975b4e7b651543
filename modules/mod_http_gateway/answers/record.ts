/** The record of a name, signed by its key: who has it need not trust this gateway. */
import { createHash } from "node:crypto";
import { parsePeerId } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { Refusal } from "../errors/refusal.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { headerText } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import { keyOf } from "../request/path.ts";

const NS_PER_SECOND = 1_000_000_000n;

/** The Etag of a record. */
export const recordTag = (bytes: Uint8Array): string =>
  `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;

/** Of nanoseconds, as records have them. */
export const secondsOf = (ttl: bigint): number => Number(ttl / NS_PER_SECOND);

export const secondsUntil = (validity: string): number => Math.floor((Date.parse(validity) - Date.now()) / 1000);

/** @throws {Refusal} 400 for what is no key, 404 where there is no record */
export async function recordAnswer(asked: Asked): Promise<ResponseFields> {
  const { node, place, path, request, settings, reading } = asked;
  if (place.namespace !== "ipns") throw new Refusal(400, `${path} is not an IPNS link`);
  if (place.segments.length > 0) throw new Refusal(400, "cannot find ipns key for subpath");
  const key = keyOf(place.root);
  if (key === undefined) throw new Refusal(400, `${place.root} is no key, so nobody has signed a record of it`);
  node.lowLevel.denylists.requirePath("ipns", place.root);
  const { offline, signal } = reading;
  const record = await node.lowLevel.names.record(parsePeerId(key), { offline, signal });
  if (record === undefined) throw new Refusal(404, `failed to resolve ${path}: there is no record of it`);
  const { bytes, ttl, validity } = record;
  const etag = recordTag(bytes);
  const seconds = Math.min(secondsOf(ttl), secondsUntil(validity));
  const headers = {
    ...settings.headers,
    etag,
    cache_control: seconds > 0 ? `public, max-age=${seconds}` : undefined,
    x_ipfs_path: headerText(path),
    ...savedHeaders(asked, "ipns-record", `${key}.ipns-record`),
  };
  return conditionAnswer(request, [etag], headers) ?? { headers, body: bytes };
}
