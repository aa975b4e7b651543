/** Which service of which peer a URL is for. */
import { parsePeerId } from "modhost/node";
import type { HttpRequest } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";

export interface AskedService {
  readonly peer: ReturnType<typeof parsePeerId>;
  /** As it was written. */
  readonly peerText: string;
  /** Of libp2p: `/http`, or `/x/NAME/http`. */
  readonly protocol: string;
  /** What the peer is asked for: the rest of the URL as it was sent, with the query. */
  readonly target: string;
}

/** `/p2p/PEER/http/PATH` or `/p2p/PEER/x/NAME/http/PATH`; the slash before PATH has to be there. @throws {Refusal} 400 */
export function askedService({ url: { raw_path: path, query } }: Pick<HttpRequest, "url">): AskedService {
  const [, peerText = "", custom, target] = /^\/p2p\/([^/]+)\/(?:x\/([^/]+)\/)?http(\/[\x21-\xff]*)$/.exec(path) ?? [];
  try {
    if (target === undefined) throw new Error("it must be /p2p/PEER/http/PATH or /p2p/PEER/x/NAME/http/PATH");
    return {
      peer: parsePeerId(peerText),
      peerText,
      protocol: custom === undefined ? "/http" : `/x/${decodeURIComponent(custom)}/http`,
      target: query === undefined ? target : `${target}?${query}`,
    };
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new Refusal(400, `failed to parse request: Invalid request path ${JSON.stringify(path)}: ${reason}`, {
      cause,
    });
  }
}
