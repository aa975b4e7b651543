/** Fetching records from peers (`/libp2p/fetch/0.0.1`): on with IPNS over pubsub. */
import { type Fetch, fetch } from "@libp2p/fetch";
import type { Libp2p, ServiceFactoryMap } from "libp2p";

const SERVICE = "fetch";
/** Requests of one peer at the same time, and milliseconds for one. */
const OPTIONS = { maxInboundStreams: 8, maxOutboundStreams: 64, timeout: 10_000 };

export const fetchService = (isOn: boolean): ServiceFactoryMap => (isOn ? { [SERVICE]: fetch(OPTIONS) } : {});

/** Undefined while it is off. */
export const fetchOf = ({ services }: Pick<Libp2p, "services">): Fetch | undefined =>
  (services as Readonly<Record<string, Fetch | undefined>>)[SERVICE];
