/** The certificates of a server, as modules see them. */

/** A certificate that the server uses, or that it has ordered and not received yet. */
export interface CertificateState {
  /**
   * The host name that the certificate is for. "*" is for clients that send no name, or a name
   * without a certificate.
   */
  readonly name: string;
  /**
   * `file`: from the option `certificates`. `self-signed`: created by the server. `acme`: from a
   * certificate authority, through ACME.
   */
  readonly source: "file" | "self-signed" | "acme";
  /** ISO 8601; undefined until it is issued. */
  readonly expires?: string | undefined;
  /** SHA-256 of the certificate, hexadecimal digits in pairs; undefined until it is issued. */
  readonly fingerprint?: string | undefined;
  /** The state of the order with the authority; only for certificates by ACME. */
  readonly order?: CertificateOrder | undefined;
}

/** An order that the server has with a certificate authority, by ACME. */
export interface CertificateOrder {
  /** The host of the authority. */
  readonly authority: string;
  /** When the server next requests a certificate, or checks whether to renew it; ISO 8601. */
  readonly next_try: string;
  /** Number of attempts in a row that have failed; 0 when the last one succeeded. */
  readonly failures: number;
  /** Why the last attempt failed. */
  readonly error?: string | undefined;
}

/** `certificates-changed`: the names whose certificates have changed. */
export interface CertificatesChangedEvent {
  readonly names: readonly string[];
}
