/** A DAG, or a part of it, as an archive (CAR) whose blocks a client checks one by one. */
import { createHash } from "node:crypto";
import { cidText, exportPath, type PathArchiveOptions, parseCid } from "modhost/node";
import type { ResponseFields, ResponseHeaders } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { begun } from "../content/begun.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import { type ArchiveAsked, archiveAsked } from "../request/archive.ts";
import { start } from "../resolve.ts";

/** @throws NodeError for a root that is not here, and a path that leads nowhere; {Refusal} 400 */
export async function carAnswer(asked: Asked): Promise<ResponseFields> {
  const { node, place, request, reading } = asked;
  const archive = archiveAsked(asked.query, asked.wanted.parameters);
  const from = await start(node, place, reading);
  const root = parseCid(from.root);
  const { readLeaf: read, buffers, lending } = reading;
  const options = { ...optionsOf(archive), lent: { read, buffers, lending } };
  const { cid, roots, archive: pieces } = await exportPath(root, from.names, reading.read, options);
  const rootText = cidText(root);
  const found = { cid, text: cidText(cid), roots, from, lifetime: from.lifetime };
  const etag = `W/"${rootText}.car.${hashOf([asked.path, archive])}"`;
  const own = contentHeaders(asked, found, etag);
  const known = conditionAnswer(request, [etag], own);
  if (known !== undefined) return known;
  const last = place.segments.at(-1);
  const name = last === undefined ? `${rootText}.car` : `${rootText}_${last}.car`;
  const { order, dups } = archive;
  const headers: ResponseHeaders = {
    ...own,
    ...savedHeaders(asked, "car", name),
    content_type: `application/vnd.ipld.car; version=1; order=${order}; dups=${dups}`,
    accept_ranges: "none",
  };
  return { headers, body: await begun(asked, lending.pieces(pieces), (piece) => lending.release(piece)) };
}

const optionsOf = ({ scope, range, dups }: ArchiveAsked): PathArchiveOptions => ({
  scope,
  range,
  duplicates: dups === "y",
});

const hashOf = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("base64url").slice(0, 13);
