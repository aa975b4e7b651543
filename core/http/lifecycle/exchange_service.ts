import type { NodeRequest } from "../../util/node_messages.ts";
import type { RequestService } from "../message/request.ts";
import type { HttpEnvironment, HttpSettings } from "../settings.ts";

/** The part of the service that an exchange uses. */
export interface ExchangeService extends RequestService {
  readonly settings: HttpSettings;
  readonly environment: HttpEnvironment;
  /** Whether each connection is closed after its current response. */
  readonly stopping: boolean;
  /** Whether the client waits for `100 Continue` before it sends its body. */
  expects(request: NodeRequest): boolean;
}
