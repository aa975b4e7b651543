/**
 * Records whether other peers can reach this node at its addresses, according to the results of
 * AutoNAT.
 */
import type { AutoNATComponents } from "@libp2p/autonat";
import { type Multiaddr, transportOf } from "./multiaddr.ts";
import { withOverrides } from "./patches/with_overrides.ts";

/** Maximum number of addresses that are remembered; the latest results are retained. */
const MAX_REMEMBERED = 64;

export class Reachability {
  readonly #results = new Map<string, { readonly address: Multiaddr; readonly isReached: boolean }>();

  /** Addresses that peers dialled back successfully, without the id. */
  get reachable(): readonly Multiaddr[] {
    return this.#where(true);
  }

  /** Addresses that peers could not dial back. */
  get unreachable(): readonly Multiaddr[] {
    return this.#where(false);
  }

  /** Returns the components for creating AutoNAT, so that its results are recorded here. */
  recordFrom(components: AutoNATComponents): AutoNATComponents {
    const { addressManager } = components;
    return withOverrides(components, {
      addressManager: withOverrides(addressManager, {
        confirmObservedAddr: (address, options) => {
          this.#note(address, true);
          addressManager.confirmObservedAddr(address, options);
        },
        removeObservedAddr: (address) => {
          this.#note(address, false);
          addressManager.removeObservedAddr(address);
        },
      }),
    });
  }

  #note(found: Multiaddr, isReached: boolean): void {
    const address = transportOf(found);
    this.#results.delete(address.toString());
    this.#results.set(address.toString(), { address, isReached });
    for (const oldest of this.#results.keys()) if (this.#results.size > MAX_REMEMBERED) this.#results.delete(oldest);
  }

  #where(wanted: boolean): readonly Multiaddr[] {
    return [...this.#results.values()].filter(({ isReached }) => isReached === wanted).map(({ address }) => address);
  }
}
