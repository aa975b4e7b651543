/**
 * TLS of libp2p. Peers prefer noise, so the 230 modules of TLS are loaded with the first connection
 * that it secures.
 */
import { type ConnectionEncrypter, type SecureConnectionOptions, serviceCapabilities } from "@libp2p/interface";
import type { TLSComponents } from "@libp2p/tls";

const PROTOCOL = "/tls/1.0.0";

export function lazyTls(): (components: TLSComponents) => ConnectionEncrypter {
  return (components) => {
    let loading: Promise<ConnectionEncrypter> | undefined;
    const load = async (options?: SecureConnectionOptions): Promise<ConnectionEncrypter> => {
      loading ??= import("@libp2p/tls").then(({ tls }) => tls()(components));
      const loaded = await loading;
      // The library only notices a signal that aborts while it works.
      options?.signal?.throwIfAborted();
      return loaded;
    };
    const encrypter: ConnectionEncrypter & { readonly [serviceCapabilities]: readonly string[] } = {
      protocol: PROTOCOL,
      [serviceCapabilities]: ["@libp2p/connection-encryption"],
      secureInbound: async (connection, options) => (await load(options)).secureInbound(connection, options),
      secureOutbound: async (connection, options) => (await load(options)).secureOutbound(connection, options),
    };
    return encrypter;
  };
}
