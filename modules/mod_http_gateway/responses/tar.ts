/** Responds with a UnixFS file or tree as a tar archive. */
import { exportTar, openFile } from "modhost/node";
import type { ResponseFields } from "../../../core/types.ts";
import { begun } from "../content/begun.ts";
import { Refusal } from "../errors/refusal.ts";
import type { GatewayCall } from "../gateway_call.ts";
import { conditionalResponse } from "../headers/conditions.ts";
import { contentHeaders } from "../headers/content.ts";
import { savedHeaders } from "../headers/saved.ts";
import type { Found } from "../resolve.ts";

const DAG_PB = 0x70;
const RAW = 0x55;

/** @throws NodeError, {Refusal} 406 for content that is not UnixFS */
export async function tarResponse(call: GatewayCall, found: Found): Promise<ResponseFields> {
  const { request, reading } = call;
  if (found.cid.code !== DAG_PB && found.cid.code !== RAW) {
    throw new Refusal(406, `${found.text} is neither a file nor a directory: fetch it with ?format=raw or ?format=car`);
  }
  const etag = `W/"${found.text}.x-tar"`;
  const own = contentHeaders(call, found, etag);
  const known = conditionalResponse(request, [etag], own);
  if (known !== undefined) return known;
  const root = await openFile(found.cid, reading.read);
  const headers = { ...own, ...savedHeaders(call, "tar", `${found.text}.tar`) };
  const { readLeaf: read, buffers, leases } = reading;
  const archive = leases.pieces(exportTar(root, found.text, read, { buffers }));
  return { headers, body: await begun(call, archive, (piece) => leases.release(piece)) };
}
