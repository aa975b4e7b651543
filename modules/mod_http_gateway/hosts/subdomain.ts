/** The subdomain gateway: each root has a host, and with it an origin, of its own. */
import type { HttpRequest } from "../../../core/types.ts";
import { Refusal } from "../errors/refusal.ts";
import { escapedPath, type Namespace, type Place } from "../place.ts";
import { namesIn, placeOfPath } from "../request/path.ts";
import { queryOf, suffixOf } from "../request/query.ts";
import { Redirect } from "../request/redirect.ts";
import type { AskedHost } from "./asked_host.ts";
import type { DnsLinks } from "./dns_links.ts";
import { cidLabel, cidOf, domainOf, inlined, isHostName, keyLabel } from "./labels.ts";
import { type KnownGateway, type SubdomainHost, serves } from "./public_gateways.ts";

/**
 * What a path of a known gateway stands for.
 *
 * @throws {Redirect} to the host of its root, where the gateway has such hosts, {Refusal} 400
 */
export async function placeOfGateway(
  request: HttpRequest,
  host: AskedHost,
  gateway: KnownGateway,
  links: DnsLinks,
): Promise<Place> {
  const [, kind = "", rest = ""] = /^\/(ip[fn]s)(?:\/(.*))?$/s.exec(request.path) ?? [];
  const namespace = kind as Namespace;
  if (gateway.subdomains && !queryOf(request).has("uri")) {
    const [root = "", ...names] = namesIn(rest);
    const label = await labelOf(namespace, root, gateway.inline || request.secure, links);
    if (label !== undefined) {
      const path = [...names, ...(rest.endsWith("/") && names.length > 0 ? [""] : [])].join("/");
      throw toHost(request, { label, namespace, authority: `${host.name}${host.port}`, path });
    }
  }
  return { ...placeOfPath(namespace, rest, request), deserialized: gateway.deserialized };
}

/** Undefined where it is neither a CID nor a name that a host can have. */
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

/** What a host below a gateway stands for. @throws {Redirect} to the host that all know it by, {Refusal} 400, 404 */
export async function placeOfSubdomain(request: HttpRequest, host: SubdomainHost, links: DnsLinks): Promise<Place> {
  const { gateway, namespace, authority } = host;
  if (!gateway.subdomains || !serves(gateway, `/${namespace}`)) throw notServed(request);
  const root = namespace === "ipfs" ? cidRoot(request, host) : await nameRoot(request, host, links);
  return {
    namespace,
    root,
    segments: namesIn(request.path),
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
  // What comes in base58 was not lowered by a browser, and is what it says.
  if (cid.version === 0) return id;
  const label = cidLabel(cid);
  if (label !== id.toLowerCase()) throw toHost(request, { label, namespace, authority, path: request.path.slice(1) });
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
  if (label !== undefined) throw toHost(request, { label, namespace, authority, path: request.path.slice(1) });
  if (name.includes(".")) return name;
  const domain = domainOf(name);
  return domain !== name && !(await links.has(domain)) && (await links.has(name)) ? name : domain;
}

export const notServed = ({ path }: Pick<HttpRequest, "path">): Refusal =>
  new Refusal(404, `${path} is not served at this host`);

interface Target {
  readonly label: string;
  readonly namespace: Namespace;
  /** Of the gateway. */
  readonly authority: string;
  /** Decoded, without the slash at its beginning. */
  readonly path: string;
}

function toHost(request: HttpRequest, { label, namespace, authority, path }: Target): Redirect {
  const scheme = request.secure ? "https" : "http";
  return new Redirect(301, `${scheme}://${label}.${namespace}.${authority}/${escapedPath(path)}${suffixOf(request)}`);
}
