/** Determines which service of which peer a URL is for. */
import { parsePeerId } from "modhost/node";
import { asciiTarget } from "../../../core/http/index.ts";
import type { HttpRequest } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";

export interface RequestedService {
  readonly peer: ReturnType<typeof parsePeerId>;
  /** As it is written in the URL. */
  readonly peerText: string;
  /** The libp2p protocol: `/http`, or `/x/NAME/http`. */
  readonly protocol: string;
  /**
   * The request target for the peer: the rest of the URL, with the query, as the client sent it.
   */
  readonly target: string;
}

/**
 * Parses `/p2p/PEER/http/PATH` or `/p2p/PEER/x/NAME/http/PATH`; the slash before PATH is required.
 * @throws {Refusal} 400
 */
export function requestedService({ url: { raw_path: path, query } }: Pick<HttpRequest, "url">): RequestedService {
  const [, peerText = "", custom, target] = /^\/p2p\/([^/]+)\/(?:x\/([^/]+)\/)?http(\/[\x21-\xff]*)$/.exec(path) ?? [];
  try {
    if (target === undefined) throw new Error("it must be /p2p/PEER/http/PATH or /p2p/PEER/x/NAME/http/PATH");
    return {
      peer: parsePeerId(peerText),
      peerText,
      protocol: custom === undefined ? "/http" : `/x/${decodeURIComponent(custom)}/http`,
      target: asciiTarget(query === undefined ? target : `${target}?${query}`),
    };
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new Refusal(400, `failed to parse request: Invalid request path ${JSON.stringify(path)}: ${reason}`, {
      cause,
    });
  }
}
