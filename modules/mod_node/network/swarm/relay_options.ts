/** The bounds of a relay (`Swarm.RelayService`). */
import type { CircuitRelayServerInit } from "@libp2p/circuit-relay-v2";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { parseDuration } from "../../util/go/duration.ts";

/** As in the reference; the library allows 15, and two hours. */
const MAX_RESERVATIONS = 128;
const RESERVATION_TTL = "1h";
/** What holds for the one limit of a connection where only the other is given. */
const CONNECTION = { duration: "2m", bytes: 2 ** 17 };

/**
 * Who is a relay here chose to be one: connections are limited only where the configuration says how, as in version 0.9.
 *
 * @throws NodeError for a duration that is none
 */
export function relayOptions(config: Pick<ConfigFile, "value">): CircuitRelayServerInit {
  const duration = config.value("Swarm.RelayService.ConnectionDurationLimit");
  const bytes = config.value("Swarm.RelayService.ConnectionDataLimit");
  return {
    reservations: {
      maxReservations: config.value("Swarm.RelayService.MaxReservations") ?? MAX_RESERVATIONS,
      reservationTtl: parseDuration(config.value("Swarm.RelayService.ReservationTTL") ?? RESERVATION_TTL),
      applyDefaultLimit: duration !== null || bytes !== null,
      // The library goes by milliseconds, and tells peers the same number, where the protocol has seconds.
      defaultDurationLimit: parseDuration(duration ?? CONNECTION.duration),
      defaultDataLimit: BigInt(bytes ?? CONNECTION.bytes),
    },
  };
}
