/** A client of ACME (RFC 8555): orders certificates of one authority for one account. */
import type { KeyObject } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { externalBinding, jwkOf, signed, thumbprint } from "./jws.ts";
import {
  AcmeProblem,
  type AcmeResponse,
  headerOf,
  jsonOf,
  retryAfterOf,
  sendRequest,
  type TransportOptions,
} from "./transport.ts";

export type ChallengeType = "http-01" | "tls-alpn-01";

export interface AcmeClientOptions extends TransportOptions {
  /** URL of the authority's directory. */
  readonly directory: string;
  /** The account's key, on P-256. */
  readonly key: KeyObject;
  readonly email?: string | undefined;
  readonly eab?: { readonly id: string; readonly key: string } | undefined;
  /** Milliseconds between polls of the authority, if it does not specify them. */
  readonly pollMs?: number;
}

/** The response to a challenge, which proves that a name belongs to this server. */
export interface Proof {
  readonly type: ChallengeType;
  readonly name: string;
  readonly token: string;
  /** RFC 8555, 8.1. */
  readonly keyAuthorization: string;
}

export interface OrderOptions {
  readonly name: string;
  readonly challenge: ChallengeType;
  /** The certificate signing request (PKCS #10, DER). */
  readonly csr: Buffer;
  /** The certificate that the new one replaces, by its id of RFC 9773. */
  readonly replaces?: string | undefined;
  /** Publishes the response to a challenge; the returned function removes it. */
  present(proof: Proof): Promise<() => void>;
}

interface Directory {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
  readonly renewalInfo?: string;
  readonly meta?: { readonly termsOfService?: string; readonly externalAccountRequired?: boolean };
}

interface Challenge {
  readonly type: string;
  readonly url: string;
  readonly token: string;
  readonly error?: { readonly detail?: string };
}

interface Authorization {
  readonly status: string;
  readonly identifier: { readonly value: string };
  readonly challenges: readonly Challenge[];
}

interface Order {
  readonly status: string;
  readonly authorizations: readonly string[];
  readonly finalize: string;
  readonly certificate?: string;
  readonly error?: { readonly detail?: string };
}

const MAX_NONCE_RETRIES = 8;
const POLL_MS = 2000;
const MAX_POLL_MS = 30_000;
/** An order that is not ready after this many polls has failed. */
const MAX_POLLS = 60;

export class AcmeClient {
  readonly #options: AcmeClientOptions;
  #directory: Directory | undefined;
  #account: string | undefined;
  #nonce: string | undefined;

  constructor(options: AcmeClientOptions) {
    this.#options = options;
  }

  /** Resolves to the URL of the terms that users of the authority must accept. */
  async terms(): Promise<string | undefined> {
    return (await this.#urls()).meta?.termsOfService;
  }

  /**
   * Orders a certificate for a name, and proves that the name belongs to this server.
   * @returns the certificate and its chain, PEM
   * @throws {AcmeProblem} and errors of the network
   */
  async order({ name, challenge, csr, replaces, present }: OrderOptions): Promise<string> {
    const { newOrder, renewalInfo } = await this.#urls();
    const plain = { identifiers: [{ type: "dns", value: name }] };
    const knows = replaces !== undefined && renewalInfo !== undefined;
    const made = await this.#post(newOrder, knows ? { ...plain, replaces } : plain).catch((error: unknown) => {
      // An earlier attempt, which failed later, has replaced the certificate already.
      if (knows && error instanceof AcmeProblem && error.type === "alreadyReplaced") return this.#post(newOrder, plain);
      throw error;
    });
    const url = headerOf(made, "location") ?? "";
    const { authorizations, finalize } = jsonOf(made) as Order;
    for (const each of authorizations) await this.#authorize(each, challenge, present);
    await this.#post(finalize, { csr: csr.toString("base64url") });
    const done = await this.#poll<Order>(url, ({ status }) => status === "valid" || status === "invalid");
    if (done.certificate === undefined) throw new Error(`the order failed: ${done.error?.detail ?? done.status}`);
    return (await this.#post(done.certificate, undefined)).text;
  }

  /**
   * Resolves to the time in which the authority wants a certificate renewed (RFC 9773); undefined
   * if it does not specify one.
   */
  async renewalWindow(id: string): Promise<{ readonly start: Date; readonly end: Date } | undefined> {
    const { renewalInfo } = await this.#urls();
    if (renewalInfo === undefined) return undefined;
    const response = await sendRequest("GET", `${renewalInfo.replace(/\/$/, "")}/${id}`, this.#options);
    const { suggestedWindow } = jsonOf(response) as { suggestedWindow?: { start: string; end: string } };
    if (response.status !== 200 || suggestedWindow === undefined) return undefined;
    const start = new Date(suggestedWindow.start);
    const end = new Date(suggestedWindow.end);
    return end > start ? { start, end } : undefined;
  }

  async #authorize(url: string, type: ChallengeType, present: OrderOptions["present"]): Promise<void> {
    const { status, identifier, challenges } = jsonOf(await this.#post(url, undefined)) as Authorization;
    if (status === "valid") return;
    const challenge = challenges.find((one) => one.type === type);
    if (challenge === undefined) throw new Error(`it offers no ${type} for ${identifier.value}`);
    const keyAuthorization = `${challenge.token}.${thumbprint(this.#options.key)}`;
    const withdraw = await present({ type, name: identifier.value, token: challenge.token, keyAuthorization });
    try {
      await this.#post(challenge.url, {});
      const done = await this.#poll<Authorization>(url, ({ status }) => status !== "pending");
      if (done.status === "valid") return;
      const reason = done.challenges.find(({ error }) => error !== undefined)?.error?.detail ?? done.status;
      throw new Error(`${type} failed for ${identifier.value}: ${reason}`);
    } finally {
      withdraw();
    }
  }

  async #poll<T>(url: string, isDone: (value: T) => boolean): Promise<T> {
    const { pollMs = POLL_MS, signal } = this.#options;
    for (let polls = 0; polls < MAX_POLLS; polls += 1) {
      const response = await this.#post(url, undefined);
      const value = jsonOf(response) as T;
      if (isDone(value)) return value;
      await pause(Math.min(MAX_POLL_MS, retryAfterOf(response) ?? pollMs), undefined, { signal });
    }
    throw new Error("it did not complete the order in time");
  }

  async #urls(): Promise<Directory> {
    const { directory } = this.#options;
    if (this.#directory !== undefined) return this.#directory;
    const response = await sendRequest("GET", directory, this.#options);
    const found = jsonOf(response) as Partial<Directory>;
    if (response.status >= 500 || response.status === 429) throw new AcmeProblem(response);
    if (response.status !== 200 || found.newOrder === undefined)
      throw new Error(`${directory} is not an ACME directory`);
    this.#directory = found as Directory;
    return this.#directory;
  }

  /** Returns the URL of the key's account, and creates the account if there is none. */
  async #accountUrl(): Promise<string> {
    if (this.#account !== undefined) return this.#account;
    const { newAccount, meta } = await this.#urls();
    const { key, email, eab } = this.#options;
    if (meta?.externalAccountRequired === true && eab === undefined) {
      throw new Error("it requires an existing account: set acme_eab_id and acme_eab_key");
    }
    const response = await this.#send(
      newAccount,
      { jwk: jwkOf(key) },
      {
        termsOfServiceAgreed: true,
        ...(email === undefined ? {} : { contact: [`mailto:${email}`] }),
        ...(eab === undefined ? {} : { externalAccountBinding: externalBinding(key, eab, newAccount) }),
      },
    );
    this.#account = headerOf(response, "location");
    if (this.#account === undefined) throw new Error("it returned no account URL");
    return this.#account;
  }

  async #post(url: string, payload: unknown): Promise<AcmeResponse> {
    return this.#send(url, { kid: await this.#accountUrl() }, payload);
  }

  async #send(url: string, who: Readonly<Record<string, unknown>>, payload: unknown): Promise<AcmeResponse> {
    for (let retries = 0; ; retries += 1) {
      const nonce = this.#nonce ?? (await this.#newNonce());
      this.#nonce = undefined;
      const body = JSON.stringify(signed(this.#options.key, { ...who, nonce, url }, payload));
      const response = await sendRequest("POST", url, this.#options, body);
      this.#nonce = headerOf(response, "replay-nonce");
      if (response.status < 400) return response;
      const problem = new AcmeProblem(response);
      if (problem.type !== "badNonce" || retries >= MAX_NONCE_RETRIES) throw problem;
    }
  }

  async #newNonce(): Promise<string> {
    const response = await sendRequest("HEAD", (await this.#urls()).newNonce, this.#options);
    const nonce = headerOf(response, "replay-nonce");
    if (nonce === undefined) throw new Error("it returned no nonce");
    return nonce;
  }
}
