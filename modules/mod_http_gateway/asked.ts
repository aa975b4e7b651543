/** A request as all rooms of the gateway know it. */
import type { NodeModule } from "modhost/node";
import type { HttpRequest } from "../../core/types.ts";
import type { Place } from "./place.ts";
import type { Reading } from "./reading.ts";
import type { Wanted } from "./request/format.ts";
import type { GatewaySettings } from "./settings.ts";

export interface Asked {
  readonly node: NodeModule;
  readonly request: HttpRequest;
  readonly query: URLSearchParams;
  readonly place: Place;
  /** The content path. */
  readonly path: string;
  readonly wanted: Wanted;
  readonly settings: GatewaySettings;
  readonly reading: Reading;
}
