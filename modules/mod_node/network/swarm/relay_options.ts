/** Limits of the relay service (`Swarm.RelayService`). */
import type { CircuitRelayServerInit } from "@libp2p/circuit-relay-v2";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { parseDuration } from "../../util/go/duration.ts";

/** The defaults of go-ipfs; those of the library are 15 reservations and two hours. */
const MAX_RESERVATIONS = 128;
const RESERVATION_TTL = "1h";
/** Default of one connection limit if only the other is configured. */
const CONNECTION = { duration: "2m", bytes: 2 ** 17 };

/**
 * Returns the options of the relay service. Operators choose to run a relay, so connections are
 * only limited if the configuration says so, as in version 0.9.
 *
 * @throws NodeError for an invalid duration
 */
export function relayOptions(config: Pick<ConfigFile, "value">): CircuitRelayServerInit {
  const duration = config.value("Swarm.RelayService.ConnectionDurationLimit");
  const bytes = config.value("Swarm.RelayService.ConnectionDataLimit");
  return {
    reservations: {
      maxReservations: config.value("Swarm.RelayService.MaxReservations") ?? MAX_RESERVATIONS,
      reservationTtl: parseDuration(config.value("Swarm.RelayService.ReservationTTL") ?? RESERVATION_TTL),
      applyDefaultLimit: duration !== null || bytes !== null,
      // The library uses milliseconds, and sends the same number to peers although the protocol
      // specifies seconds.
      defaultDurationLimit: parseDuration(duration ?? CONNECTION.duration),
      defaultDataLimit: BigInt(bytes ?? CONNECTION.bytes),
    },
  };
}
