/**
 * A certificate authority that speaks ACME on the loopback interface. It verifies signatures,
 * nonces and proofs.
 */
import "reflect-metadata";
import {
  createHash,
  createPublicKey,
  type JsonWebKey,
  randomBytes,
  verify,
  webcrypto,
  type X509Certificate,
} from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const HOUR_MS = 3_600_000;

export interface FakeAcmeOptions {
  /** Port of the server under test. */
  readonly http: () => number;
  readonly https: () => number;
  /** Seconds from now that certificates are valid for. Their validity began an hour ago. */
  readonly lifetime?: number;
  /** Binding that new accounts must have. */
  readonly eab?: { readonly id: string };
}

export interface FakeAcme extends AsyncDisposable {
  readonly directory: string;
  /** The requests and their results, in order. */
  readonly seen: string[];
  /** Rejects the next orders with status 429 and this Retry-After. */
  limit(orders: number, retryAfter: number): void;
  /**
   * From now on, the suggested renewal window of each certificate has passed: clients should renew
   * at once.
   */
  renewNow(): void;
}

interface Order {
  readonly name: string;
  readonly token: string;
  status: string;
  authorization: string;
  error?: string | undefined;
  certificate?: string;
}

interface Head {
  readonly alg: string;
  readonly url: string;
  readonly nonce: string;
  readonly jwk?: JsonWebKey;
  readonly kid?: string;
}

class Refusal extends Error {
  readonly status: number;
  readonly type: string;
  readonly headers: Record<string, string>;

  constructor(status: number, type: string, detail: string, headers: Record<string, string> = {}) {
    super(detail);
    this.status = status;
    this.type = type;
    this.headers = headers;
  }
}

const parse = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());

export async function fakeAcme(options: FakeAcmeOptions): Promise<FakeAcme> {
  const seen: string[] = [];
  const nonces = new Set<string>();
  const accounts = new Map<string, JsonWebKey>();
  const orders: Order[] = [];
  let limited = { orders: 0, retryAfter: 0 };
  let isRenewalDue = false;
  let isFirst = true;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const validity = { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + 24 * 365 * HOUR_MS) };
  const ca = await X509CertificateGenerator.createSelfSigned(
    {
      keys,
      name: "CN=Fake Authority",
      signingAlgorithm: algorithm,
      ...validity,
      extensions: [new BasicConstraintsExtension(true)],
    },
    webcrypto,
  );
  const nonce = () => {
    const made = randomBytes(12).toString("base64url");
    nonces.add(made);
    return made;
  };

  /** Verifies signature, nonce and URL of a request, and returns its payload. */
  const opened = async (
    request: IncomingMessage,
    url: string,
  ): Promise<{ payload: unknown; head: Head; jwk: JsonWebKey }> => {
    const { protected: head64, payload, signature } = JSON.parse(await text(request)) as Record<string, string>;
    const head = parse(head64 as string) as Head;
    if (!nonces.delete(head.nonce) || isFirst) {
      isFirst = false;
      throw new Refusal(400, "badNonce", "unknown nonce");
    }
    if (head.url !== url || head.alg !== "ES256")
      throw new Refusal(400, "malformed", "the signature is for another URL");
    const jwk = head.jwk ?? accounts.get(head.kid ?? "");
    if (jwk === undefined) throw new Refusal(400, "accountDoesNotExist", "unknown account");
    const key = createPublicKey({ key: jwk, format: "jwk" });
    const data = Buffer.from(`${head64}.${payload}`);
    const isRight = verify(
      "sha256",
      data,
      { key, dsaEncoding: "ieee-p1363" },
      Buffer.from(signature as string, "base64url"),
    );
    if (!isRight) throw new Refusal(400, "malformed", "the signature is wrong");
    return { payload: payload === "" ? undefined : parse(payload as string), head, jwk };
  };

  const issue = async (order: Order, csr: Buffer): Promise<void> => {
    const request = new Pkcs10CertificateRequest(csr);
    const names = request.extensions
      .filter((extension) => extension instanceof SubjectAlternativeNameExtension)
      .flatMap(({ names }) => names.items.map(({ value }) => value));
    if (!(await request.verify(webcrypto)) || names.join() !== order.name) {
      throw new Refusal(400, "badCSR", "the request is for other names");
    }
    const certificate = await X509CertificateGenerator.create(
      {
        subject: `CN=${order.name}`,
        issuer: ca.subject,
        publicKey: await request.publicKey.export(webcrypto),
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        notBefore: validity.notBefore,
        notAfter: new Date(Date.now() + (options.lifetime ?? 90 * 86_400) * 1000),
        extensions: [
          new SubjectAlternativeNameExtension([{ type: "dns", value: order.name }]),
          await AuthorityKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        ],
      },
      webcrypto,
    );
    order.certificate = `${certificate.toString("pem")}\n${ca.toString("pem")}\n`;
    order.status = "valid";
  };

  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(request.url ?? "", base);
    const [, room = "", at = ""] = pathname.split("/");
    const url = `${base}${pathname}`;
    const send = (value: unknown, status = 200, headers: Record<string, string> = {}) => {
      const body = typeof value === "string" ? value : JSON.stringify(value);
      response.writeHead(status, { "Replay-Nonce": nonce(), "Retry-After": "0", ...headers }).end(body);
    };
    if (room === "directory") {
      const meta = { termsOfService: `${base}/terms`, externalAccountRequired: options.eab !== undefined };
      const rooms = { newNonce: `${base}/nonce`, newAccount: `${base}/account`, newOrder: `${base}/order` };
      return send({ ...rooms, renewalInfo: `${base}/renewal`, meta });
    }
    if (room === "nonce") return send("");
    if (room === "renewal") {
      seen.push("renewal window requested");
      const from = Date.now() + (isRenewalDue ? -2 : 1000) * HOUR_MS;
      const window = { start: new Date(from).toISOString(), end: new Date(from + HOUR_MS).toISOString() };
      return send({ suggestedWindow: window });
    }
    const { payload, head, jwk } = await opened(request, url);
    const order = orders[Number(at)] as Order;
    const links = { authorizations: [`${base}/authz/${at}`], finalize: `${base}/finalize/${at}` };
    if (room === "account") {
      const { termsOfServiceAgreed, externalAccountBinding: eab } = payload as {
        termsOfServiceAgreed?: boolean;
        externalAccountBinding?: { protected: string };
      };
      if (termsOfServiceAgreed !== true) throw new Refusal(403, "userActionRequired", "the terms must be agreed to");
      if (options.eab !== undefined && (eab === undefined ? eab : parse(eab.protected).kid) !== options.eab.id) {
        throw new Refusal(403, "unauthorized", "the binding is for another account");
      }
      const { crv, kty, x, y } = jwk;
      const id = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
      const account = `${base}/accounts/${id}`;
      seen.push(accounts.has(account) ? "account known" : "account made");
      accounts.set(account, jwk);
      return send({ status: "valid" }, 201, { Location: account });
    }
    if (room === "order" && at === "") {
      const { identifiers, replaces } = payload as { identifiers: { value: string }[]; replaces?: string };
      if (limited.orders > 0) {
        limited.orders -= 1;
        seen.push("order refused");
        throw new Refusal(429, "rateLimited", "too many orders", { "Retry-After": String(limited.retryAfter) });
      }
      const name = identifiers[0]?.value ?? "";
      seen.push(`order ${name}${replaces === undefined ? "" : " replaces another"}`);
      const token = randomBytes(16).toString("base64url");
      orders.push({ name, token, status: "pending", authorization: "pending" });
      const id = orders.length - 1;
      const made = { status: "pending", authorizations: [`${base}/authz/${id}`], finalize: `${base}/finalize/${id}` };
      return send(made, 201, { Location: `${base}/order/${id}` });
    }
    if (room === "order") return send({ status: order.status, ...links, certificate: `${base}/certificate/${at}` });
    if (room === "authz") {
      const challenges = ["http-01", "tls-alpn-01"].map((type) => {
        const error = order.error === undefined ? {} : { error: { detail: order.error } };
        return { type, token: order.token, url: `${base}/challenge/${at}/${type}`, ...error };
      });
      return send({ status: order.authorization, identifier: { type: "dns", value: order.name }, challenges });
    }
    if (room === "challenge") {
      const type = pathname.split("/")[3] as string;
      const thumbprint = head.kid?.split("/").at(-1);
      const prove = type === "http-01" ? proveByHttp : proveByTls;
      order.error = await prove(order, `${order.token}.${thumbprint}`, options).catch(String);
      order.authorization = order.error === undefined ? "valid" : "invalid";
      seen.push(`${type} ${order.authorization}`);
      return send({});
    }
    if (room === "finalize") {
      if (order.authorization !== "valid")
        throw new Refusal(403, "orderNotReady", "the authorization is not valid yet");
      await issue(order, Buffer.from((payload as { csr: string }).csr, "base64url"));
      return send({ status: "processing", ...links });
    }
    return send(order.certificate ?? "");
  };
  const server = createServer((request, response) => {
    respond(request, response).catch((error: Refusal) => {
      const { status = 500, type = "serverInternal", headers = {} } = error;
      const body = JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, detail: error.message });
      response.writeHead(status, { "Replay-Nonce": nonce(), ...headers }).end(body);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    directory: `${base}/directory`,
    seen,
    limit: (count, retryAfter) => void (limited = { orders: count, retryAfter }),
    renewNow: () => void (isRenewalDue = true),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Resolves to what is wrong with the proof. */
async function proveByHttp(order: Order, expected: string, { http }: FakeAcmeOptions): Promise<string | undefined> {
  const url = `http://127.0.0.1:${http()}/.well-known/acme-challenge/${order.token}`;
  const response = await fetch(url, { headers: { host: order.name } });
  const found = await response.text();
  return found === expected ? undefined : `${url} responds with ${response.status} ${found}`;
}

async function proveByTls(order: Order, expected: string, { https }: FakeAcmeOptions): Promise<string | undefined> {
  const ALPNProtocols = ["acme-tls/1"];
  const options = {
    port: https(),
    host: "127.0.0.1",
    servername: order.name,
    ALPNProtocols,
    rejectUnauthorized: false,
  };
  const socket = connect(options);
  await once(socket, "secureConnect");
  const { raw } = socket.getPeerX509Certificate() as X509Certificate;
  const protocol = socket.alpnProtocol;
  socket.destroy();
  const digest = createHash("sha256").update(expected).digest();
  return protocol === "acme-tls/1" && raw.includes(digest)
    ? undefined
    : `the certificate for ${protocol} is another one`;
}
