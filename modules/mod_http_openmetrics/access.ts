/** Decides who may read the metrics. */
import {
  addressesOf,
  findToken,
  type KnownToken,
  readAuthorization,
  readTokens,
  type StrangerReason,
  strangerReason,
} from "../../core/http/index.ts";
import type { HttpRequest, Module, TokenRefusal } from "../../core/types.ts";

export type Access = (request: HttpRequest) => TokenRefusal | undefined;

const forbidden = (message: string): TokenRefusal => ({ status: 403, message, headers: {} });

const refusals: Readonly<Record<StrangerReason, string>> = {
  "other machine":
    "metrics are available to the addresses of the option openmetrics_allow_ips, and with a token that has the scope metrics",
  proxy: "through a proxy, metrics require a token with the scope metrics",
  "foreign name":
    "without a token, metrics are available at localhost, at addresses, and at the names of the option openmetrics_hosts",
};

/**
 * Returns a function that returns the reason for refusing a request; undefined if it may read the
 * metrics. By the options, a token gives access from anywhere, and an address gives access to
 * direct callers without a proxy. A caller on this machine may be a browser that another page has
 * sent here, so it must name the host in a way that no foreign page can. @throws {ModhostError}
 * OPTION_INVALID
 */
export function accessOf(module: Module): Access {
  const includes = addressesOf(module.get_option_array("openmetrics_allow_ips") ?? [], "openmetrics_allow_ips");
  const hosts = new Set((module.get_option_array("openmetrics_hosts") ?? []).map((name) => name.toLowerCase()));
  const tokens: readonly KnownToken[] = readTokens(module.get_option("openmetrics_tokens"), {
    name: "openmetrics_tokens",
    example: "{}",
    read: (fields) => (Object.keys(fields).length === 0 ? {} : undefined),
  });
  return (request) => {
    const token = module.tokens.identify(request);
    if (token !== undefined) {
      const need = { kind: "metrics" } as const;
      return "status" in token ? token : token.allows(need) ? undefined : module.tokens.lacks(token, need);
    }
    const presented = readAuthorization(request.header("authorization"));
    if (presented?.scheme === "bearer") {
      return findToken([presented.credentials], tokens) === undefined
        ? forbidden("this token is not in the option openmetrics_tokens")
        : undefined;
    }
    const reason = strangerReason(request, { hosts, includes });
    return reason === undefined ? undefined : forbidden(refusals[reason]);
  };
}
