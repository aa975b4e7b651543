/** The addresses that options request: each port on each interface. */

export interface BindAddress {
  readonly address: string;
  /** 0: the system chooses the port. */
  readonly port: number;
  /**
   * The entry in the list of ports that it comes from: each 0 is a separate port, the same on every
   * interface.
   */
  readonly group: string;
}

export interface BindAddressDifference {
  readonly opened: readonly BindAddress[];
  readonly closed: readonly BindAddress[];
}

/** Returns every port on every interface. */
export function bindAddressesOf({
  ports,
  interfaces,
}: {
  ports: readonly number[];
  interfaces: readonly string[];
}): BindAddress[] {
  return ports.flatMap((port, at) => {
    const zeros = ports.slice(0, at).filter((other) => other === 0).length;
    const group = port === 0 ? `0#${zeros}` : String(port);
    return interfaces.map((address) => ({ address, port, group }));
  });
}

/** Returns the addresses to open and to close; those to close are elements of `open`. */
export function bindAddressDifference(
  before: readonly BindAddress[],
  after: readonly BindAddress[],
  open: readonly BindAddress[],
): BindAddressDifference {
  return {
    opened: after.filter((bindAddress) => !before.some((other) => isSame(bindAddress, other))),
    closed: open.filter((bindAddress) => !after.some((other) => isSame(bindAddress, other))),
  };
}

function isSame(one: BindAddress, other: BindAddress): boolean {
  return one.address === other.address && one.group === other.group;
}
