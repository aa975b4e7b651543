/** A host with the pinning service, and calls of its API. */

import type { HostSetup } from "#test/support/host.ts";
import { untilRight } from "#test/support/network/report.ts";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";

export const tokens = { "token-of-anna": { user: "anna" }, "token-of-ben": { user: "ben" } };

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined where there is no body. */
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
  /** `path` begins behind `/pinning`; as anna, unless another token is given. */
  ask(method: string, path: string, body?: unknown, token?: string): Promise<Answer>;
  list(query?: string, token?: string): Promise<Page>;
  /** Asks for a pin. */
  pin(wish: object, token?: string): Promise<PinStatus>;
  /** The request once its status is this one, or after a while as it is. */
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
    const answer = await fetch(`http://127.0.0.1:${host.http}/pinning${path}`, {
      method,
      headers: { connection: "close", ...(token === "" ? {} : { authorization: `Bearer ${token}` }) },
      body: body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type") === "application/json";
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text || undefined };
  };
  const asked = async <T>(status: number, ...call: Parameters<typeof ask>): Promise<T> => {
    const answer = await ask(...call);
    if (answer.status !== status) throw new Error(`${call[0]} ${call[1]}: ${JSON.stringify(answer.body)}`);
    return answer.body as T;
  };
  return Object.assign(host, {
    ask,
    list: (query = "", token?: string) => asked<Page>(200, "GET", `/pins${query}`, undefined, token),
    pin: (wish: object, token?: string) => asked<PinStatus>(202, "POST", "/pins", wish, token),
    until: (id: string, status: string) =>
      untilRight(
        () => asked<PinStatus>(200, "GET", `/pins/${id}`),
        (pin) => pin.status === status,
      ),
  });
}

/** Recursive pins of a node. */
export async function pinsOf(host: RpcHost): Promise<readonly string[]> {
  const { Keys } = await host.value<{ Keys: Record<string, unknown> }>("pin/ls?type=recursive");
  return Object.keys(Keys);
}

/** A file of these bytes; nothing keeps it. */
export async function addUnpinned(host: RpcHost, text: string): Promise<string> {
  const { lines } = await host.call("add?pin=false&cid-version=1", { file: text });
  return (lines.at(-1) as { Hash: string }).Hash;
}
