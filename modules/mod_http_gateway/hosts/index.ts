/**
 * Claims requests for the gateway by their host: known gateways, hosts below them, and domains with
 * a DNSLink.
 */
import { isIP } from "node:net";
import type { Handler, HttpProvider, HttpRequest } from "../../../core/types.ts";
import type { ContentTarget } from "../content_target.ts";
import type { Gateway } from "../gateway.ts";
import { withBytes } from "../request/byte_path.ts";
import { namesIn } from "../request/path.ts";
import { Redirect } from "../request/redirect.ts";
import type { GatewaySettings } from "../settings.ts";
import { isDocumentRequest, isLoopbackAddress } from "../shared_origin.ts";
import { serves } from "./public_gateways.ts";
import { type RequestedHost, requestedHost } from "./requested_host.ts";
import { notServed, targetOfGatewayPath, targetOfSubdomain } from "./subdomain.ts";

type Claims = NonNullable<HttpProvider["claims"]>;

/**
 * Handles such requests before the routes of other apps, because everything at such a host is
 * content, whatever its path.
 */
export function hostClaims(
  gateway: Gateway,
  settings: () => GatewaySettings,
  sharesOrigin: () => boolean = () => false,
): Claims {
  const { links } = gateway;
  const handlerFor = (targetOf: (request: HttpRequest) => ContentTarget | Promise<ContentTarget>): Handler => {
    return (event) => gateway.respond(event, targetOf);
  };

  function website(host: RequestedHost, deserialized: boolean | undefined): Handler {
    return handlerFor((request) => ({
      namespace: "ipns",
      root: host.name,
      segments: namesIn(withBytes(request.path, request)),
      slash: request.path.endsWith("/"),
      prefix: "",
      website: "dnslink",
      gateway: `//${host.name}${host.port}`,
      deserialized,
    }));
  }

  /**
   * Returns a handler for a host whose DNSLink makes it a website; returns `otherwise` if it has no
   * DNSLink.
   */
  function linked(host: RequestedHost, deserialized: boolean | undefined, otherwise: Handler | undefined) {
    const chosen = (has: boolean) => (has ? website(host, deserialized) : otherwise);
    const found = links.has(host.name);
    return typeof found === "boolean" ? chosen(found) : found.then(chosen);
  }

  /** Redirects a browser from a loopback address to the host of the root, as `localhost` does. */
  function redirectToHost(request: HttpRequest, { name, port }: RequestedHost): Handler | undefined {
    if (!isLoopbackAddress(name) || request.secure || !isDocumentRequest(request) || !sharesOrigin()) return undefined;
    const localhost = { name: "localhost", written: "localhost", port };
    const known = settings().publicGateways.find(localhost);
    if (known?.subdomains !== true || !serves(known, request.path)) return undefined;
    return handlerFor(async (request) => {
      try {
        return await targetOfGatewayPath(request, localhost, known, links);
      } catch (thrown) {
        // Programs get the content itself at the same URL.
        throw thrown instanceof Redirect ? thrown.depending("Sec-Fetch-Dest, Sec-Fetch-Mode") : thrown;
      }
    });
  }

  return (request) => {
    const host = requestedHost(request);
    if (host === undefined) return undefined;
    const { publicGateways, dnslink } = settings();
    // Hosts that the server is configured for belong to its apps.
    const mayLink = dnslink && isDomain(host.name) && request.host !== host.name;
    const known = publicGateways.find(host);
    if (known !== undefined) {
      // Other paths of a gateway, such as `/p2p`, have routes of their own.
      const isContent = isContentPath(request.path);
      if (isContent && serves(known, request.path)) {
        return handlerFor((request) => targetOfGatewayPath(request, host, known, links));
      }
      const refused = isContent ? handlerFor((request) => Promise.reject(notServed(request))) : undefined;
      return mayLink && known.dnslink ? linked(host, known.deserialized, refused) : refused;
    }
    const below = publicGateways.below(host);
    if (below !== undefined) return handlerFor((request) => targetOfSubdomain(request, below, links));
    if (mayLink) return linked(host, undefined, undefined);
    return isContentPath(request.path) ? redirectToHost(request, host) : undefined;
  };
}

const isContentPath = (path: string): boolean => /^\/ip[fn]s(\/|$)/.test(path);

/** Whether a name is a DNS name, and neither an address nor a name of this machine. */
const isDomain = (name: string): boolean =>
  name.includes(".") && !name.endsWith(".localhost") && !name.startsWith("[") && isIP(name) === 0;
