/** Sends calls to the RPC and the gateway of a node over persistent connections. */
import { Pool } from "undici";
import { multipart } from "#test/unit/modules/mod_http_api/support.ts";
import type { CallResponse, CaseCall } from "./family.ts";

/** Timeout of a call in milliseconds. */
const TIMEOUT = 60_000;

export class RawRpc implements AsyncDisposable {
  readonly #rpc: Pool;
  readonly #gateway: Pool | undefined;

  /** `gateway` is required by families that send requests there. */
  constructor(url: string, gateway?: string) {
    const options = { connections: 1, headersTimeout: TIMEOUT, bodyTimeout: TIMEOUT };
    this.#rpc = new Pool(url, options);
    this.#gateway = gateway === undefined ? undefined : new Pool(gateway, options);
  }

  /** Without a response, resolves with status 0 and the reason. */
  readonly ask = async (call: CaseCall): Promise<CallResponse> => {
    // The library would wait forever.
    if (/[^\x21-\x7e]/.test(call.path)) throw new Error(`The path has to be percent-encoded: ${call.path}`);
    try {
      const { statusCode, headers, body, trailers } = await this.#send(call);
      const bytes = Buffer.from(await body.arrayBuffer());
      const late = trailers["x-stream-error"];
      return { status: statusCode, headers, body: bytes, late };
    } catch (error) {
      return { status: 0, headers: {}, body: Buffer.from(String(error)), late: undefined };
    }
  };

  #send({ path, parts, gateway }: CaseCall) {
    if (gateway === undefined) {
      return this.#rpc.request({ method: "POST", path: `/api/v0/${path}`, ...(parts && multipart(parts)) });
    }
    if (this.#gateway === undefined) throw new Error("this node has no gateway");
    return this.#gateway.request({ path, method: gateway.method as "GET", headers: { ...gateway.headers } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#rpc.destroy(), this.#gateway?.destroy()]);
  }
}
