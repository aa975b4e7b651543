/** Requests that are the gateway's by their host: known gateways, hosts below them, and domains with a DNSLink. */
import { isIP } from "node:net";
import type { Handler, HttpProvider, HttpRequest } from "../../../core/types.ts";
import type { Gateway } from "../gateway.ts";
import type { Place } from "../place.ts";
import { namesIn } from "../request/path.ts";
import type { GatewaySettings } from "../settings.ts";
import { type AskedHost, askedHost } from "./asked_host.ts";
import { serves } from "./public_gateways.ts";
import { notServed, placeOfGateway, placeOfSubdomain } from "./subdomain.ts";

type Claims = NonNullable<HttpProvider["claims"]>;

/** What takes them before the routes of other apps: all that is below such a host is content, whatever its path. */
export function hostClaims(gateway: Gateway, settings: () => GatewaySettings): Claims {
  const { links } = gateway;
  const answered = (placeOf: (request: HttpRequest) => Place | Promise<Place>): Handler => {
    return (event) => gateway.answer(event, placeOf);
  };

  function website(host: AskedHost, deserialized: boolean | undefined): Handler {
    return answered(({ path }) => ({
      namespace: "ipns",
      root: host.name,
      segments: namesIn(path),
      slash: path.endsWith("/"),
      prefix: "",
      website: "dnslink",
      gateway: `//${host.name}${host.port}`,
      deserialized,
    }));
  }

  /** `otherwise` where the host has no link. */
  function linked(host: AskedHost, deserialized: boolean | undefined, otherwise: Handler | undefined) {
    const chosen = (has: boolean) => (has ? website(host, deserialized) : otherwise);
    const found = links.has(host.name);
    return typeof found === "boolean" ? chosen(found) : found.then(chosen);
  }

  return (request) => {
    const host = askedHost(request);
    if (host === undefined) return undefined;
    const { publicGateways, dnslink } = settings();
    // Hosts that the server is set up for are their apps'.
    const mayLink = dnslink && isDomain(host.name) && request.host !== host.name;
    const known = publicGateways.find(host);
    if (known !== undefined) {
      // What else a gateway has, such as `/p2p`, is a matter of routes.
      const isContent = /^\/ip[fn]s(\/|$)/.test(request.path);
      if (isContent && serves(known, request.path)) {
        return answered((asked) => placeOfGateway(asked, host, known, links));
      }
      const refused = isContent ? answered((asked) => Promise.reject(notServed(asked))) : undefined;
      return mayLink && known.dnslink ? linked(host, known.deserialized, refused) : refused;
    }
    const below = publicGateways.below(host);
    if (below !== undefined) return answered((asked) => placeOfSubdomain(asked, below, links));
    return mayLink ? linked(host, undefined, undefined) : undefined;
  };
}

/** A name of the DNS, and neither an address nor one of this machine. */
const isDomain = (name: string): boolean =>
  name.includes(".") && !name.endsWith(".localhost") && !name.startsWith("[") && isIP(name) === 0;
