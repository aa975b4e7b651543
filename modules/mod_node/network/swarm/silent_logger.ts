/** A logger for libp2p that formats and writes nothing. */
import type { ComponentLogger, Logger } from "@libp2p/interface";

const silence: Logger = Object.assign(() => undefined, {
  error: () => undefined,
  trace: () => undefined,
  enabled: false,
  newScope: () => silence,
});

export const silentLogger: ComponentLogger = { forComponent: () => silence };
