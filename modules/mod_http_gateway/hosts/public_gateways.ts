/** The hosts that are known as gateways: `Gateway.PublicGateways`. */
import { isIP } from "node:net";
import type { Namespace } from "../content_target.ts";
import type { RequestedHost } from "./requested_host.ts";

/** An entry as it is configured. */
export interface GatewaySpec {
  readonly Paths?: readonly string[] | null;
  readonly UseSubdomains?: boolean;
  readonly InlineDNSLink?: boolean | null;
  readonly NoDNSLink?: boolean;
  readonly DeserializedResponses?: boolean | null;
}

export interface KnownGateway {
  readonly paths: readonly string[];
  /** Whether each root has its own host below this one. */
  readonly subdomains: boolean;
  /** Whether domains are encoded as one label, which wildcard certificates require. */
  readonly inline: boolean;
  /** Whether the host itself may be a website. */
  readonly dnslink: boolean;
  /** Undefined: the general setting applies. */
  readonly deserialized: boolean | undefined;
}

/** A host below a gateway: `ID.NAMESPACE.GATEWAY`. */
export interface SubdomainHost {
  readonly gateway: KnownGateway;
  readonly namespace: Namespace;
  /** As the client sent it. */
  readonly id: string;
  /** The gateway's own host, with the requested port. */
  readonly authority: string;
}

/** Hosts that browsers resolve to this machine, with any subdomain. */
const builtIn: Readonly<Record<string, GatewaySpec>> = {
  localhost: { Paths: ["/ipfs", "/ipns", "/p2p"], UseSubdomains: true },
};

export class PublicGateways {
  readonly #exact = new Map<string, KnownGateway>();
  /** Labels, in which `*` matches any label, and the port. */
  readonly #patterns: { readonly labels: readonly string[]; readonly port: string; readonly gateway: KnownGateway }[] =
    [];

  /** Null removes an entry, including a built-in one. */
  constructor(configured: Readonly<Record<string, GatewaySpec | null>> = {}) {
    for (const [key, spec] of Object.entries({ ...builtIn, ...configured })) {
      if (spec === null) continue;
      const [, name = "", port = ""] = /^(.*?)(:\d+)?$/s.exec(key.toLowerCase()) ?? [];
      const gateway = knownGateway(spec, isIP(name.replace(/^\[|\]$/g, "")) !== 0);
      if (name.includes("*")) this.#patterns.push({ labels: name.split("."), port, gateway });
      else this.#exact.set(`${name}${port}`, gateway);
    }
  }

  /** Finds the entry for the host with its port, then without it, and last by pattern. */
  find({ name, port }: Pick<RequestedHost, "name" | "port">): KnownGateway | undefined {
    const exact = this.#exact.get(`${name}${port}`) ?? this.#exact.get(name);
    if (exact !== undefined || this.#patterns.length === 0) return exact;
    const labels = name.split(".");
    const fitting = this.#patterns.filter((pattern) => fits(pattern.labels, labels));
    return (fitting.find((each) => each.port === port) ?? fitting.find((each) => each.port === ""))?.gateway;
  }

  /** Returns the gateway that contains this host as a subdomain. */
  below({ name, written, port }: RequestedHost): SubdomainHost | undefined {
    // A quick test: most hosts contain no label `ipfs` or `ipns`.
    if (!/\.ip[fn]s\./.test(name)) return undefined;
    const labels = name.split(".");
    for (let at = labels.length - 1; at > 1; at -= 1) {
      const namespace = labels[at - 1];
      if (namespace !== "ipfs" && namespace !== "ipns") continue;
      const suffix = labels.slice(at).join(".");
      const gateway = this.find({ name: suffix, port });
      if (gateway === undefined) continue;
      const id = written.slice(0, name.length - suffix.length - namespace.length - 2);
      return { gateway, namespace, id, authority: `${suffix}${port}` };
    }
    return undefined;
  }
}

function knownGateway(spec: GatewaySpec, isAddress: boolean): KnownGateway {
  return {
    paths: (spec.Paths ?? []).map((path) => path.replace(/\/+$/, "")),
    // An IP address has no subdomains.
    subdomains: spec.UseSubdomains === true && !isAddress,
    inline: spec.InlineDNSLink === true,
    dnslink: spec.NoDNSLink !== true && !isAddress,
    deserialized: spec.DeserializedResponses ?? undefined,
  };
}

const fits = (pattern: readonly string[], labels: readonly string[]): boolean =>
  pattern.length === labels.length && pattern.every((label, at) => label === "*" || label === labels[at]);

/** Returns whether the gateway serves the path. */
export const serves = ({ paths }: KnownGateway, path: string): boolean =>
  paths.some((each) => path === each || path.startsWith(`${each}/`));
