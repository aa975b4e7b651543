/** A host with the Admin API, and a client of its socket. */
import { request } from "node:http";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { createTestHost, type TestHost, type TestHostOptions } from "#core/testing/index.ts";

export interface AdminResponse<T = unknown> {
  readonly status: number;
  readonly value: T;
}

export interface AdminHost extends TestHost {
  readonly socket: string;
  /** Like `inject`, but for the service of the Admin API. */
  ask: TestHost["inject"];
  /** Calls an operation through the socket. */
  call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<AdminResponse<T>>;
}

export async function adminHost(t: TestContext, options: TestHostOptions = {}): Promise<AdminHost> {
  const config = { modules_enabled: ["http_admin"], unload_grace: 2, ...options.config };
  const running = await createTestHost({ ...options, config });
  t.after(() => running.stop());
  const socket = join(running.folder, "admin.sock");
  const ask: TestHost["inject"] = (request) =>
    running.inject({ service: "admin", ...(typeof request === "string" ? { path: request } : request) });
  return { ...running, socket, ask, call: (...call) => callAt(socket, ...call) };
}

export function callAt<T>(
  socketPath: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<AdminResponse<T>> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "Content-Type": "application/json" };
    const sent = request({
      agent: false,
      socketPath,
      method,
      path: `/admin/api${path}`,
      headers: { ...type, ...headers },
    });
    sent.on("error", reject).on("response", async (response) => {
      const text = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode ?? 0, value: JSON.parse(text) as T });
    });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
