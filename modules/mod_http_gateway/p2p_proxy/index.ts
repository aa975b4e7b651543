/**
 * `/p2p/PEER/http/PATH`: the HTTP services of peers, as go-ipfs provides them with
 * `Experimental.P2pHttpProxy`.
 */
import { httpMethods, isLooping } from "../../../core/http/index.ts";
import type { Handler, HttpEvent, RouteTable } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { Gateway, GatewayDeps } from "../gateway.ts";
import { serves } from "../hosts/public_gateways.ts";
import { requestedHost } from "../hosts/requested_host.ts";
import { askPeer } from "./peer_request.ts";
import { requestedService } from "./requested_service.ts";

interface P2pProxyDeps extends GatewayDeps {
  readonly isOn: () => boolean;
}

const LOOP_DETECTED = 508;

/** Routes below `/p2p`, for all methods, because the peer decides which it supports. */
export function p2pRoutes(gateway: Gateway, { node, log, settings: now, isOn }: P2pProxyDeps): RouteTable {
  const handler: Handler = (event: HttpEvent) => {
    const { request } = event;
    const host = requestedHost(request);
    const known = host && now().publicGateways.find(host);
    // While the proxy is off, the path behaves as if it did not exist.
    if (!isOn() || (known !== undefined && !serves(known, request.path))) return undefined;
    return gateway.respondWith(event, undefined, async (settings) => {
      const service = requestedService(request);
      if (isLooping(request)) {
        throw new Refusal(LOOP_DETECTED, "The request forms a loop: a peer has sent it back to this node");
      }
      return askPeer({ event, node, settings, service, log });
    });
  };
  return Object.fromEntries(httpMethods.map((method) => [`${method} /*`, handler]));
}
