/** A request, with everything that the parts of the gateway know about it. */
import type { NodeModule } from "modhost/node";
import type { HttpRequest } from "../../core/types.ts";
import type { ContentTarget } from "./content_target.ts";
import type { Reading } from "./reading.ts";
import type { Wanted } from "./request/format.ts";
import type { GatewaySettings } from "./settings.ts";

export interface GatewayCall {
  readonly node: NodeModule;
  readonly request: HttpRequest;
  readonly query: URLSearchParams;
  readonly target: ContentTarget;
  /** The content path. */
  readonly path: string;
  readonly wanted: Wanted;
  readonly settings: GatewaySettings;
  readonly reading: Reading;
}
