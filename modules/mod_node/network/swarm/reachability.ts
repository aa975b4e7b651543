/** Whether others reach this node at its addresses, as they told when AutoNAT asked them. */
import type { AutoNATComponents } from "@libp2p/autonat";
import { type Multiaddr, transportOf } from "./multiaddr.ts";
import { withOverrides } from "./patches/with_overrides.ts";

/** Addresses that are remembered, those that were told of last. */
const MAX_TOLD = 64;

export class Reachability {
  readonly #told = new Map<string, { readonly address: Multiaddr; readonly isReached: boolean }>();

  /** Addresses that peers dialled back, without the id. */
  get reachable(): readonly Multiaddr[] {
    return this.#where(true);
  }

  /** Addresses at which they did not get through. */
  get unreachable(): readonly Multiaddr[] {
    return this.#where(false);
  }

  /** The components to make AutoNAT with, whose findings are noted here. */
  told(components: AutoNATComponents): AutoNATComponents {
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
    this.#told.delete(address.toString());
    this.#told.set(address.toString(), { address, isReached });
    for (const oldest of this.#told.keys()) if (this.#told.size > MAX_TOLD) this.#told.delete(oldest);
  }

  #where(wanted: boolean): readonly Multiaddr[] {
    return [...this.#told.values()].filter(({ isReached }) => isReached === wanted).map(({ address }) => address);
  }
}
