/** Fetches records from peers (`/libp2p/fetch/0.0.1`); enabled together with IPNS over pubsub. */
import { type Fetch, fetch } from "@libp2p/fetch";
import type { Libp2p, ServiceFactoryMap } from "libp2p";

const SERVICE = "fetch";
/** Maximum number of concurrent requests per peer, and the timeout of a request in milliseconds. */
const OPTIONS = { maxInboundStreams: 8, maxOutboundStreams: 64, timeout: 10_000 };

export const fetchService = (isOn: boolean): ServiceFactoryMap => (isOn ? { [SERVICE]: fetch(OPTIONS) } : {});

/** Returns undefined if the protocol is off. */
export const fetchOf = ({ services }: Pick<Libp2p, "services">): Fetch | undefined =>
  (services as Readonly<Record<string, Fetch | undefined>>)[SERVICE];
