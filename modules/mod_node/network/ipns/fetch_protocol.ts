/** Asking peers for records directly (`/libp2p/fetch/0.0.1`): on where names go over publish and subscribe. */
import { type Fetch, fetch } from "@libp2p/fetch";
import type { Libp2p, ServiceFactoryMap } from "libp2p";

const service = "fetch";
/** Questions of one peer at the same time; milliseconds for one. */
const limits = { maxInboundStreams: 8, maxOutboundStreams: 64, timeout: 10_000 };

export const fetchService = (isOn: boolean): ServiceFactoryMap => (isOn ? { [service]: fetch(limits) } : {});

/** Undefined while it is off. */
export const fetchOf = ({ services }: Pick<Libp2p, "services">): Fetch | undefined =>
  (services as Readonly<Record<string, Fetch | undefined>>)[service];
