/** `/p2p/PEER/http/PATH`: the HTTP services of peers, as go-ipfs has them by `Experimental.P2pHttpProxy`. */
import { httpMethods, isLooping } from "../../../core/http/index.ts";
import type { Handler, HttpEvent, RouteTable } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import type { Gateway, GatewayDeps } from "../gateway.ts";
import { askedHost } from "../hosts/asked_host.ts";
import { serves } from "../hosts/public_gateways.ts";
import { askPeer } from "./ask_peer.ts";
import { askedService } from "./asked_service.ts";

interface P2pProxyDeps extends GatewayDeps {
  readonly isOn: () => boolean;
}

const LOOP_DETECTED = 508;

/** At `/p2p`; of all methods, since it is the peer that answers them. */
export function p2pRoutes(gateway: Gateway, { node, log, settings: now, isOn }: P2pProxyDeps): RouteTable {
  const handler: Handler = (event: HttpEvent) => {
    const { request } = event;
    const host = askedHost(request);
    const known = host && now().publicGateways.find(host);
    // As if nothing were here.
    if (!isOn() || (known !== undefined && !serves(known, request.path))) return undefined;
    return gateway.answerBy(event, undefined, async (settings) => {
      const service = askedService(request);
      if (isLooping(request)) {
        throw new Refusal(LOOP_DETECTED, "The request goes round in a circle: a peer leads back to this node");
      }
      return askPeer({ event, node, settings, service, log });
    });
  };
  return Object.fromEntries(httpMethods.map((method) => [`${method} /*`, handler]));
}
