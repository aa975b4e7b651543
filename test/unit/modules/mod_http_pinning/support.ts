/** A host with the pinning service, and functions that call its API. */

import type { HostSetup } from "#test/support/host.ts";
import { untilRight } from "#test/support/network/report.ts";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";

export const tokens = { "token-of-anna": { user: "anna" }, "token-of-ben": { user: "ben" } };

export interface PinningResponse {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined for an empty body. */
  readonly body: unknown;
}

export interface PinStatus {
  readonly requestid: string;
  readonly status: string;
  readonly created: string;
  readonly pin: { readonly cid: string; readonly name?: string };
  readonly delegates: readonly string[];
  readonly info?: { readonly status_details: string };
}

export interface Page {
  readonly count: number;
  readonly results: readonly PinStatus[];
}

export interface ServiceHost extends RpcHost {
  /** @param path the path after `/pinning` @param token anna's by default */
  ask(method: string, path: string, body?: unknown, token?: string): Promise<PinningResponse>;
  list(query?: string, token?: string): Promise<Page>;
  /** Requests a pin. */
  pin(wish: object, token?: string): Promise<PinStatus>;
  /** Returns the request once it has this status, or its last state after a timeout. */
  until(id: string, status: string): Promise<PinStatus>;
}

export async function startPinning(
  config: Record<string, unknown> = {},
  setup: Partial<HostSetup> = {},
): Promise<ServiceHost> {
  const host = await startRpc(
    { modules_enabled: ["http", "http_errors", "http_api", "http_pinning"], pinning_tokens: tokens, ...config },
    setup,
  );
  const ask: ServiceHost["ask"] = async (method, path, body, token = "token-of-anna") => {
    const response = await fetch(`http://127.0.0.1:${host.http}/pinning${path}`, {
      method,
      headers: { connection: "close", ...(token === "" ? {} : { authorization: `Bearer ${token}` }) },
      body: body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type") === "application/json";
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text || undefined };
  };
  const expectStatus = async <T>(status: number, ...call: Parameters<typeof ask>): Promise<T> => {
    const response = await ask(...call);
    if (response.status !== status) throw new Error(`${call[0]} ${call[1]}: ${JSON.stringify(response.body)}`);
    return response.body as T;
  };
  return Object.assign(host, {
    ask,
    list: (query = "", token?: string) => expectStatus<Page>(200, "GET", `/pins${query}`, undefined, token),
    pin: (wish: object, token?: string) => expectStatus<PinStatus>(202, "POST", "/pins", wish, token),
    until: (id: string, status: string) =>
      untilRight(
        () => expectStatus<PinStatus>(200, "GET", `/pins/${id}`),
        (pin) => pin.status === status,
      ),
  });
}

/** Returns the recursive pins of a node. */
export async function pinsOf(host: RpcHost): Promise<readonly string[]> {
  const { Keys } = await host.value<{ Keys: Record<string, unknown> }>("pin/ls?type=recursive");
  return Object.keys(Keys);
}

/** Adds a file without pinning it, and returns its CID. */
export async function addUnpinned(host: RpcHost, text: string): Promise<string> {
  const { lines } = await host.call("add?pin=false&cid-version=1", { file: text });
  return (lines.at(-1) as { Hash: string }).Hash;
}
