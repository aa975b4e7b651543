/** Sends requests to an S3 server at the lowest cost for the client. */
import { request } from "node:http";
import { connect } from "node:net";
import { Signer } from "#node/storage/shared/s3/signing.ts";
import type { S3User } from "#test/support/engines/s3_signature.ts";

export interface BareStore {
  /** In the form `http://HOST:PORT`. */
  readonly endpoint: string;
  readonly bucket: string;
  readonly user: S3User;
}

const RECEIVE_BYTES = 256 * 1024;
/** SHA-256 of an empty body. */
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const signer = new Signer("us-east-1");

function sign(method: string, { endpoint, bucket, user }: BareStore, key: string, sha256: string) {
  const { host } = new URL(endpoint);
  const path = `/${bucket}/${key}`;
  return { path, headers: signer.sign({ method, host, path, query: {}, headers: {}, sha256 }, user).headers };
}

/** Rejects unless the status is 200. `sha256`: hash of all pieces in hexadecimal. */
export function putBare(store: BareStore, key: string, pieces: readonly Uint8Array[], sha256: string): Promise<void> {
  const { path, headers } = sign("PUT", store, key, sha256);
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const { hostname, port } = new URL(store.endpoint);
  return new Promise((resolve, reject) => {
    const options = { method: "PUT", hostname, port, path, headers: { ...headers, "content-length": length } };
    const sending = request(options, (response) => {
      response.resume();
      if (response.statusCode === 200) response.once("end", resolve);
      else reject(new Error(`PUT ${path}: status ${response.statusCode}`));
    });
    sending.once("error", reject);
    const rest = pieces.values();
    const send = () => {
      for (const piece of rest) if (!sending.write(piece)) return;
      sending.end();
    };
    sending.on("drain", send);
    send();
  });
}

/** Resolves to the number of received bytes, including the head. The bytes are not stored. */
export function getBare(store: BareStore, key: string): Promise<number> {
  const { path, headers } = sign("GET", store, key, EMPTY);
  const { hostname, port } = new URL(store.endpoint);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve, reject) => {
    const buffer = Buffer.allocUnsafe(RECEIVE_BYTES);
    let bytes = 0;
    const receive = (length: number) => {
      if (bytes === 0 && !buffer.toString("latin1", 0, 12).startsWith("HTTP/1.1 200"))
        reject(new Error(`GET ${path}: ${buffer.toString("latin1", 0, Math.min(length, 600))}`));
      bytes += length;
      return true;
    };
    const socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: { buffer, callback: receive },
    });
    socket.on("error", reject).on("close", () => resolve(bytes));
    socket.write(`GET ${path} HTTP/1.1\r\nConnection: close\r\n${lines.join("")}\r\n`);
  });
}
