/** A file or a tree of UnixFS as a tar archive. */
import { exportTar, openFile } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { begun } from "../content/begun.ts";
import { Refusal } from "../errors/refusal.ts";
import { conditionAnswer } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import type { Found } from "../resolve.ts";

const DAG_PB = 0x70;
const RAW = 0x55;

/** @throws NodeError, {Refusal} 406 for what is no UnixFS */
export async function tarAnswer(asked: Asked, found: Found): Promise<ResponseFields> {
  const { request, reading } = asked;
  if (found.cid.code !== DAG_PB && found.cid.code !== RAW) {
    throw new Refusal(406, `${found.text} is no file and no directory: fetch it with ?format=raw or ?format=car`);
  }
  const etag = `W/"${found.text}.x-tar"`;
  const own = contentHeaders(asked, found, etag);
  const known = conditionAnswer(request, [etag], own);
  if (known !== undefined) return known;
  const root = await openFile(found.cid, reading.read);
  const headers = { ...own, ...savedHeaders(asked, "tar", `${found.text}.tar`) };
  const { readLeaf: read, buffers, lending } = reading;
  const archive = lending.pieces(exportTar(root, found.text, read, { buffers }));
  return { headers, body: await begun(asked, archive, (piece) => lending.release(piece)) };
}
