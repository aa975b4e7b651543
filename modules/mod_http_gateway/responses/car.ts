/**
 * Responds with a DAG, or a part of it, as an archive (CAR). A client can verify each of its
 * blocks.
 */
import { createHash } from "node:crypto";
import { cidText, exportPath, type PathArchiveOptions, parseCid } from "modhost/node";
import type { ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import { begun } from "../content/begun.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import { type RequestedArchive, requestedArchive } from "../request/archive.ts";
import { start } from "../resolve.ts";

/**
 * @throws NodeError for a root that is not available and for a path that does not exist, {Refusal}
 * 400
 */
export async function carResponse(call: GatewayCall): Promise<ResponseFields> {
  const { node, target, request, reading } = call;
  const archive = requestedArchive(call.query, call.wanted.parameters);
  const from = await start(node, target, reading);
  const root = parseCid(from.root);
  const { readLeaf: read, buffers, leases } = reading;
  const options = { ...optionsOf(archive), provesAbsence: true, pooled: { read, buffers, leases } };
  const { cid, roots, archive: pieces } = await exportPath(root, from.names, reading.read, options);
  const rootText = cidText(root);
  const found = { cid, text: cidText(cid), roots, from, lifetime: from.lifetime };
  const etag = `W/"${rootText}.car.${hashOf([call.path, archive])}"`;
  const own = contentHeaders(call, found, etag);
  const known = conditionalResponse(request, [etag], own);
  if (known !== undefined) return known;
  const last = target.segments.at(-1);
  const name = last === undefined ? `${rootText}.car` : `${rootText}_${last}.car`;
  const { order, dups } = archive;
  const headers: ResponseHeaders = {
    ...own,
    ...savedHeaders(call, "car", name),
    content_type: `application/vnd.ipld.car; version=1; order=${order}; dups=${dups}`,
    accept_ranges: "none",
  };
  return { headers, body: await begun(call, leases.pieces(pieces), (piece) => leases.release(piece)) };
}

const optionsOf = ({ scope, range, dups }: RequestedArchive): PathArchiveOptions => ({
  scope,
  range,
  duplicates: dups === "y",
});

const hashOf = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("base64url").slice(0, 13);
