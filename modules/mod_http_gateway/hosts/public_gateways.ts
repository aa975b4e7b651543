/** The hosts that are known as gateways: `Gateway.PublicGateways`. */
import { isIP } from "node:net";
import type { Namespace } from "../place.ts";
import type { AskedHost } from "./asked_host.ts";

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
  /** Each root has a host of its own below this one. */
  readonly subdomains: boolean;
  /** Domains become one label, as certificates with a wildcard need it. */
  readonly inline: boolean;
  /** The host itself may be a website. */
  readonly dnslink: boolean;
  /** Undefined: as everywhere. */
  readonly deserialized: boolean | undefined;
}

/** A host below a gateway: `ID.NAMESPACE.GATEWAY`. */
export interface SubdomainHost {
  readonly gateway: KnownGateway;
  readonly namespace: Namespace;
  /** As it was written. */
  readonly id: string;
  /** The gateway's own host, with the port that was asked. */
  readonly authority: string;
}

/** What browsers resolve to the machine itself, whatever stands before it. */
const builtIn: Readonly<Record<string, GatewaySpec>> = {
  localhost: { Paths: ["/ipfs", "/ipns", "/p2p"], UseSubdomains: true },
};

export class PublicGateways {
  readonly #exact = new Map<string, KnownGateway>();
  /** Labels, of which `*` is any, and the port. */
  readonly #patterns: { readonly labels: readonly string[]; readonly port: string; readonly gateway: KnownGateway }[] =
    [];

  /** Null takes an entry away, also one that is built in. */
  constructor(configured: Readonly<Record<string, GatewaySpec | null>> = {}) {
    for (const [key, spec] of Object.entries({ ...builtIn, ...configured })) {
      if (spec === null) continue;
      const [, name = "", port = ""] = /^(.*?)(:\d+)?$/s.exec(key.toLowerCase()) ?? [];
      const gateway = knownGateway(spec, isIP(name.replace(/^\[|\]$/g, "")) !== 0);
      if (name.includes("*")) this.#patterns.push({ labels: name.split("."), port, gateway });
      else this.#exact.set(`${name}${port}`, gateway);
    }
  }

  /** The entry of the host with its port is looked for first, then without, and patterns last. */
  find({ name, port }: Pick<AskedHost, "name" | "port">): KnownGateway | undefined {
    const exact = this.#exact.get(`${name}${port}`) ?? this.#exact.get(name);
    if (exact !== undefined || this.#patterns.length === 0) return exact;
    const labels = name.split(".");
    const fitting = this.#patterns.filter((pattern) => fits(pattern.labels, labels));
    return (fitting.find((each) => each.port === port) ?? fitting.find((each) => each.port === ""))?.gateway;
  }

  /** The gateway that a host is below. */
  below({ name, written, port }: AskedHost): SubdomainHost | undefined {
    // Most hosts have no such label, and nothing is looked up for them.
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
    // An address has no hosts below it.
    subdomains: spec.UseSubdomains === true && !isAddress,
    inline: spec.InlineDNSLink === true,
    dnslink: spec.NoDNSLink !== true && !isAddress,
    deserialized: spec.DeserializedResponses ?? undefined,
  };
}

const fits = (pattern: readonly string[], labels: readonly string[]): boolean =>
  pattern.length === labels.length && pattern.every((label, at) => label === "*" || label === labels[at]);

/** Is the path one that the gateway serves? */
export const serves = ({ paths }: KnownGateway, path: string): boolean =>
  paths.some((each) => path === each || path.startsWith(`${each}/`));
