/** The subdomain gateway: each root has a host of its own, and with it an origin. */
import type { HttpRequest } from "../../../core/types.ts";
import { type ContentTarget, escapedPath, type Namespace } from "../content_target.ts";
import { Refusal } from "../errors/refusal.ts";
import { withBytes } from "../request/byte_path.ts";
import { namesIn, targetOfPath } from "../request/path.ts";
import { queryOf, suffixOf } from "../request/query.ts";
import { Redirect } from "../request/redirect.ts";
import type { DnsLinks } from "./dns_links.ts";
import { cidLabel, cidOf, domainOf, inlined, isHostName, keyLabel } from "./labels.ts";
import { type KnownGateway, type SubdomainHost, serves } from "./public_gateways.ts";
import type { RequestedHost } from "./requested_host.ts";

/**
 * Returns the target of a path on a known gateway. @throws {Redirect} to the host of its root, if
 * the gateway has such hosts, {Refusal} 400
 */
export async function targetOfGatewayPath(
  request: HttpRequest,
  host: RequestedHost,
  gateway: KnownGateway,
  links: DnsLinks,
): Promise<ContentTarget> {
  const [, kind = "", requested = ""] = /^\/(ip[fn]s)(?:\/(.*))?$/s.exec(request.path) ?? [];
  const rest = withBytes(requested, request);
  const namespace = kind as Namespace;
  if (gateway.subdomains && !queryOf(request).has("uri")) {
    const [root = "", ...names] = namesIn(rest);
    const label = await labelOf(namespace, root, gateway.inline || request.secure, links);
    if (label !== undefined) {
      const path = [...names, ...(rest.endsWith("/") && names.length > 0 ? [""] : [])].join("/");
      throw toHost(request, { label, namespace, authority: `${host.name}${host.port}`, path });
    }
  }
  return { ...targetOfPath(namespace, requested, request), deserialized: gateway.deserialized };
}

/** Returns undefined for a root that is neither a CID nor a name that a host can have. */
async function labelOf(
  namespace: Namespace,
  root: string,
  isInlined: boolean,
  links: DnsLinks,
): Promise<string | undefined> {
  if (namespace === "ipfs") {
    const cid = cidOf(root);
    return cid === undefined ? undefined : cidLabel(cid);
  }
  const key = keyLabel(root);
  if (key !== undefined) return key;
  const domain = root.toLowerCase().replace(/\.$/, "");
  if (!isHostName(domain)) return undefined;
  return isInlined && domain.includes(".") && (await links.has(domain)) ? inlined(domain) : domain;
}

/**
 * Returns the target of a host below a gateway. @throws {Redirect} to the canonical host, {Refusal}
 * 400, 404
 */
export async function targetOfSubdomain(
  request: HttpRequest,
  host: SubdomainHost,
  links: DnsLinks,
): Promise<ContentTarget> {
  const { gateway, namespace, authority } = host;
  if (!gateway.subdomains || !serves(gateway, `/${namespace}`)) throw notServed(request);
  const root = namespace === "ipfs" ? cidRoot(request, host) : await nameRoot(request, host, links);
  return {
    namespace,
    root,
    segments: namesIn(withBytes(request.path, request)),
    slash: request.path.endsWith("/"),
    prefix: "",
    website: "subdomain",
    gateway: `//${authority}`,
    deserialized: gateway.deserialized,
  };
}

function cidRoot(request: HttpRequest, { id, namespace, authority }: SubdomainHost): string {
  const cid = cidOf(id);
  if (cid === undefined) {
    throw new Refusal(400, `invalid path ${JSON.stringify(`/ipfs/${id}${request.path}`)}: the host names no CID`);
  }
  // A base58 label in correct case was not changed by a browser, so it is used as it is.
  if (cid.version === 0) return id;
  const label = cidLabel(cid);
  if (label !== id.toLowerCase())
    throw toHost(request, { label, namespace, authority, path: withBytes(request.path, request).slice(1) });
  return label;
}

async function nameRoot(
  request: HttpRequest,
  { id, namespace, authority }: SubdomainHost,
  links: DnsLinks,
): Promise<string> {
  const name = id.toLowerCase();
  const label = keyLabel(id);
  if (label === name) return label;
  if (label !== undefined)
    throw toHost(request, { label, namespace, authority, path: withBytes(request.path, request).slice(1) });
  if (name.includes(".")) return name;
  const domain = domainOf(name);
  return domain !== name && !(await links.has(domain)) && (await links.has(name)) ? name : domain;
}

export const notServed = ({ path }: Pick<HttpRequest, "path">): Refusal =>
  new Refusal(404, `${path} is not served at this host`);

interface Target {
  readonly label: string;
  readonly namespace: Namespace;
  /** Host and port of the gateway. */
  readonly authority: string;
  /** Decoded, without the slash at its beginning. */
  readonly path: string;
}

function toHost(request: HttpRequest, { label, namespace, authority, path }: Target): Redirect {
  const scheme = request.secure ? "https" : "http";
  return new Redirect(301, `${scheme}://${label}.${namespace}.${authority}/${escapedPath(path)}${suffixOf(request)}`);
}
