/** Places that options ask for: each port on each address. */

export interface Place {
  readonly address: string;
  /** 0: of the system's choice. */
  readonly port: number;
  /** The entry of the list of ports that it comes from: each 0 is a port of its own, the same on every address. */
  readonly group: string;
}

export interface PlaceDifference {
  readonly opened: readonly Place[];
  readonly closed: readonly Place[];
}

/** Every port on every address. */
export function placesOf({ ports, interfaces }: { ports: readonly number[]; interfaces: readonly string[] }): Place[] {
  return ports.flatMap((port, at) => {
    const zeros = ports.slice(0, at).filter((other) => other === 0).length;
    const group = port === 0 ? `0#${zeros}` : String(port);
    return interfaces.map((address) => ({ address, port, group }));
  });
}

/** What comes and what goes; of what goes, the places among `open`. */
export function placeDifference(
  before: readonly Place[],
  after: readonly Place[],
  open: readonly Place[],
): PlaceDifference {
  return {
    opened: after.filter((place) => !before.some((other) => isSame(place, other))),
    closed: open.filter((place) => !after.some((other) => isSame(place, other))),
  };
}

function isSame(one: Place, other: Place): boolean {
  return one.address === other.address && one.group === other.group;
}
